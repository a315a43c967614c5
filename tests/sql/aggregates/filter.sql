-- FILTER with and without DISTINCT; a filter that is null takes nothing.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT `user`,
  COUNT(*) FILTER (WHERE qty > 1), SUM(qty) FILTER (WHERE price < 2),
  COUNT(DISTINCT item) FILTER (WHERE qty IS NOT NULL), MIN(price) FILTER (WHERE item = 'none')
FROM orders GROUP BY `user`;
