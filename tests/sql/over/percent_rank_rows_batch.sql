-- Of more rows, beside other functions of the same window.
-- record: batch
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, CAST(PERCENT_RANK() OVER w AS DECIMAL(10, 6)), CAST(CUME_DIST() OVER w AS DECIMAL(10, 6)), RANK() OVER w, COUNT(*) OVER w
FROM orders WINDOW w AS (PARTITION BY item ORDER BY qty);
