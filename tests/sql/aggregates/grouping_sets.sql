-- GROUPING SETS, with null as a key and as no key.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT `user`, item, COUNT(*), GROUPING(`user`), GROUPING(item), GROUPING_ID(`user`, item)
FROM orders GROUP BY GROUPING SETS ((`user`, item), (`user`), ());
