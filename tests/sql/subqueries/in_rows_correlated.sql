-- Pairs that another row of the same price has.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT o.id, o.item FROM orders AS o
WHERE (o.item, o.qty) IN (SELECT p.item, p.qty FROM orders AS p WHERE p.price = o.price AND p.id <> o.id);
