CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
WITH totals AS (SELECT item, SUM(qty) AS total FROM orders WHERE id < 15 GROUP BY item),
  most AS (SELECT MAX(total) AS total FROM totals)
SELECT t.item, t.total FROM totals t JOIN most m ON t.total = m.total;
