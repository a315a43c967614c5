-- Rows whose place in the order is a total that grows, and what those around them result in.
-- record: batch
-- streams here
CREATE TABLE orders (id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT item, `user`, n, total,
  SUM(n) OVER (PARTITION BY item ORDER BY total DESC, `user` ROWS BETWEEN 1 PRECEDING AND CURRENT ROW),
  RANK() OVER (PARTITION BY item ORDER BY total DESC),
  LEAD(`user`) OVER (PARTITION BY item ORDER BY total DESC, `user`),
  MIN(total) OVER (ORDER BY n, item, `user`)
FROM (SELECT item, `user`, COUNT(*) AS n, SUM(CAST(qty AS BIGINT)) AS total FROM orders GROUP BY item, `user`);
