-- In order of arrival, with nulls and without.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT item, CAST(ARRAY_AGG(qty) AS STRING), CAST(ARRAY_AGG(DISTINCT `user`) AS STRING),
  CAST(ARRAY_AGG(id) FILTER (WHERE qty > 2) AS STRING) FROM orders GROUP BY item;
