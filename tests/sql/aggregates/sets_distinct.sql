CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT item, COUNT(DISTINCT `user`), SUM(DISTINCT qty), COUNT(*) FILTER (WHERE qty > 1)
FROM orders WHERE id <> 15 GROUP BY GROUPING SETS ((item), ());
