-- A limit below an aggregate.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT COUNT(*), SUM(qty), MAX(id) FROM (SELECT * FROM orders ORDER BY price DESC, id LIMIT 5);
