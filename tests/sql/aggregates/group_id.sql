-- The same grouping set twice, told apart.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT item, COUNT(*), GROUP_ID(), GROUPING(item) FROM orders GROUP BY GROUPING SETS ((item), (item), (), (item), ());
