-- A pair with a null may be any: it is out if the rest is equal, and makes all out whose rest is.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, item, qty FROM orders WHERE (item, qty) NOT IN (SELECT item, qty FROM orders WHERE id IN (2, 3, 6, 7));
