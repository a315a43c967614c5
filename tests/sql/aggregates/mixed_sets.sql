-- ROLLUP times GROUPING SETS beside a plain key.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT `user`, item, qty, COUNT(*), GROUPING_ID(`user`, item, qty)
FROM orders WHERE id < 9 GROUP BY `user`, ROLLUP (item), GROUPING SETS ((qty), ());
