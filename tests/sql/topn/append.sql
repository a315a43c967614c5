-- The two dearest of each item; the row number is shown.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT id, item, price, rn FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY price DESC, id) AS rn FROM orders WHERE price IS NOT NULL
) WHERE rn <= 2;
