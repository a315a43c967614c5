-- A condition above: the row that is last now, or none.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT `user`, id, qty FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY `user` ORDER BY ts DESC) AS rn FROM orders
) WHERE rn = 1 AND qty < 3;
