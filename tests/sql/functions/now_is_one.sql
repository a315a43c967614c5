-- Of processing time nothing is known but that it passes.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, CURRENT_TIMESTAMP >= TO_TIMESTAMP_LTZ(1700000000, 0), CURRENT_DATE > DATE '2024-01-01', PROCTIME() IS NULL, NOW() IS NULL FROM orders WHERE id < 3;
