-- An aggregate of an aggregate takes back what changed below it.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT n, COUNT(*) AS users, MAX(total) AS most FROM (
  SELECT `user`, COUNT(*) AS n, SUM(qty * price) AS total FROM orders GROUP BY `user`
) GROUP BY n;
