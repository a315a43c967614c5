-- Flink takes the default where the value before is NULL, too.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT id, LAG(qty) OVER w, NULLIF(LAG(COALESCE(qty, -999), 2, -1) OVER w, -999)
FROM orders WINDOW w AS (PARTITION BY `user` ORDER BY ts);
