-- The order is by an aggregate that grows.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT `user`, total, rn FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY total DESC, `user`) AS rn FROM (
    SELECT `user`, SUM(qty * price) AS total FROM orders WHERE id <> 15 GROUP BY `user`
  )
) WHERE rn <= 3;
