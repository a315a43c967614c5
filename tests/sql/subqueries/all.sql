-- Compared with all values of a query, as > ALL with the greatest of them: a null among them makes that unknown.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, price FROM orders
WHERE price > ALL (SELECT price FROM orders WHERE item = 'apple') AND price <= ALL (SELECT price FROM orders WHERE id IN (4, 13))
  AND NOT price >= ALL (SELECT price FROM orders WHERE item = 'fig');
