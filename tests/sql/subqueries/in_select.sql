-- A scalar query of nothing is null.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, qty - (SELECT AVG(qty) FROM orders WHERE id < 8), (SELECT MAX(item) FROM orders WHERE id > 100) FROM orders WHERE id < 5;
