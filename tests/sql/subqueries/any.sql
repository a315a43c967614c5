-- Compared with any value of a query: a null among them decides nothing if another does.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, qty FROM orders
WHERE qty > ANY (SELECT qty FROM orders WHERE id IN (1, 3, 5)) AND qty <> SOME (SELECT qty FROM orders WHERE id IN (8, 18));
