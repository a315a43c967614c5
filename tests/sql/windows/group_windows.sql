-- The older form.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT TUMBLE_START(ts, INTERVAL '20' SECOND), TUMBLE_END(ts, INTERVAL '20' SECOND), `user`, SUM(price)
FROM orders GROUP BY TUMBLE(ts, INTERVAL '20' SECOND), `user`;
