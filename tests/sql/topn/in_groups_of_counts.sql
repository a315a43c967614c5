-- The key of the group is part of the key of what is ranked.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT `user`, item, n, rn FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY `user` ORDER BY n DESC, item) AS rn FROM (
    SELECT `user`, item, COUNT(*) AS n FROM orders GROUP BY `user`, item
  )
) WHERE rn <= 2;
