-- Equals share a rank; a stream of Flink's has row numbers only.
-- record: batch
-- streams here
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT item, id, r FROM (SELECT *, RANK() OVER (PARTITION BY item ORDER BY price) AS r FROM orders) WHERE r <= 2;
