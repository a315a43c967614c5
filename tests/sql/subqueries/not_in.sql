-- NOT IN over a list without nulls.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT id FROM orders WHERE item NOT IN (SELECT item FROM orders WHERE qty > 5 AND item IS NOT NULL);
