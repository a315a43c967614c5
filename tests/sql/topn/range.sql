-- From the second to the third, with their numbers.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT `user`, id, rn FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY `user` ORDER BY qty DESC, id DESC) AS rn FROM orders
) WHERE rn >= 2 AND rn < 4;
