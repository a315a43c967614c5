-- Flink counts equal rows one by one in CUME_DIST; the standard counts them together, which is this.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, CAST(PERCENT_RANK() OVER w AS DECIMAL(10, 6)), CAST(CAST(COUNT(*) OVER w AS DOUBLE) / COUNT(*) OVER (PARTITION BY item) AS DECIMAL(10, 6)), RANK() OVER w, COUNT(*) OVER w
FROM orders WINDOW w AS (PARTITION BY item ORDER BY qty);
