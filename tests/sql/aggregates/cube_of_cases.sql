-- What is computed by CASE, IF and COALESCE has no name of its own.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT CASE WHEN qty > 2 THEN 'many' WHEN qty > 0 THEN 'few' END AS size_, COALESCE(`user`, 'nobody'), item, COUNT(*), MAX(price)
FROM orders GROUP BY CUBE (CASE WHEN qty > 2 THEN 'many' WHEN qty > 0 THEN 'few' END, COALESCE(`user`, 'nobody')), item;
