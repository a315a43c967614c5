-- FIRST_VALUE and LAST_VALUE pass over nulls, and go by arrival.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT `user`, FIRST_VALUE(qty), LAST_VALUE(qty), FIRST_VALUE(price), LAST_VALUE(price) FROM orders GROUP BY `user`;
