-- Several at once, in the order that is asked for.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT item, CAST(PERCENTILE(qty, ARRAY[0.9, 0.1, 0.5]) AS STRING) FROM orders GROUP BY item;
