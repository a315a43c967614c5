-- Late rows are left out.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT id, `user`, SUM(qty) OVER w, COUNT(*) OVER w, MIN(price) OVER w
FROM orders WINDOW w AS (PARTITION BY `user` ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW);
