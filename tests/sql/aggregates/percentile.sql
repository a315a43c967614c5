-- Exact, between two values in proportion; nulls do not count.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT item, PERCENTILE(qty, 0.5), PERCENTILE(price, 0.25), PERCENTILE(id, 0.0), PERCENTILE(id, 1.0),
  PERCENTILE(qty, 0.5) FILTER (WHERE qty < 4) FROM orders GROUP BY item;
