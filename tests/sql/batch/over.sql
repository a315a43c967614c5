-- record: batch
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, SUM(qty) OVER (PARTITION BY item ORDER BY ts, id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW),
  MAX(price) OVER (PARTITION BY item ORDER BY price), COUNT(*) OVER (PARTITION BY `user` ORDER BY ts) FROM orders;
