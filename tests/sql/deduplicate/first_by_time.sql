-- The first order of each item by event time, though others came before.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT id, item, ts FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts ASC) AS rn FROM orders
) WHERE rn = 1;
