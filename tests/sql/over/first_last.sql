-- First and last values by time.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, FIRST_VALUE(item) OVER w, LAST_VALUE(qty) OVER w, COUNT(*) OVER w
FROM orders WINDOW w AS (PARTITION BY `user` ORDER BY ts);
