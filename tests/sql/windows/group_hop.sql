CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT HOP_START(ts, INTERVAL '10' SECOND, INTERVAL '20' SECOND), COUNT(*), AVG(price)
FROM orders GROUP BY HOP(ts, INTERVAL '10' SECOND, INTERVAL '20' SECOND);
