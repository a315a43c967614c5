-- Of few values the approximate number is the right one.
-- record: batch
-- streams here
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT item, APPROX_COUNT_DISTINCT(`user`), APPROX_COUNT_DISTINCT(qty) FROM orders GROUP BY item;
