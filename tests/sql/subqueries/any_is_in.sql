-- = ANY is IN, and <> ALL is NOT IN.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, item FROM orders
WHERE item = ANY (SELECT item FROM orders WHERE qty > 5) AND id <> ALL (SELECT id FROM orders WHERE price > 2 AND id IS NOT NULL);
