CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT id, CASE item WHEN 'apple' THEN 1 WHEN 'pear' THEN 2 END, item LIKE '_p%', `user` IN ('ann', 'bob'),
  `user` IS DISTINCT FROM 'ann', qty BETWEEN 2 AND 4
FROM orders;
