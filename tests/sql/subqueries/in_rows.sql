-- Pairs that are among those of a query; those with a null are not.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, item, qty FROM orders WHERE (item, qty) IN (SELECT item, qty FROM orders WHERE price < 1.5 OR id > 15);
