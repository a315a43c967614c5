-- The least of numbers that grow.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT item, n FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY n, item DESC) AS rn FROM (SELECT item, COUNT(*) AS n FROM orders GROUP BY item)
) WHERE rn <= 2;
