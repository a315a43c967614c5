-- TRUE, FALSE and unknown as values.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, qty > SOME (SELECT qty FROM orders WHERE id IN (1, 3)), qty <= ALL (SELECT qty FROM orders WHERE id IN (1, 5)) FROM orders WHERE id < 9;
