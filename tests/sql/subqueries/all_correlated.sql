-- The dearest of each item.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT o.id, o.item, o.price FROM orders AS o
WHERE o.price >= ALL (SELECT p.price FROM orders AS p WHERE p.item = o.item AND p.price IS NOT NULL);
