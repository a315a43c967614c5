-- DISTINCT and plain aggregates together, over one column and over two.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT item, COUNT(DISTINCT `user`), COUNT(`user`), SUM(DISTINCT qty), COUNT(DISTINCT price), MAX(DISTINCT qty)
FROM orders GROUP BY item;
