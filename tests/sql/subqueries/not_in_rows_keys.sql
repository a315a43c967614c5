-- Without nulls on either side.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, item FROM (SELECT id, COALESCE(item, '') AS item, COALESCE(qty, 0) AS qty FROM orders)
WHERE (item, qty) NOT IN (SELECT item, qty FROM orders WHERE item IS NOT NULL AND qty IS NOT NULL AND id < 10);
