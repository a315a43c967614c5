-- Each value once, beside an aggregate of all.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT PERCENTILE(DISTINCT qty, 0.5), PERCENTILE(qty, 0.5), COUNT(*) FROM orders;
