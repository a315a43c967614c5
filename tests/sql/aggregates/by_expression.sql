-- Grouped by what is computed, shown in other words, and by a constant.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT MOD(id, 3) + 1, CASE WHEN qty > 2 THEN 'many' WHEN qty IS NULL THEN '?' ELSE 'few' END, MAX(id) - MIN(id), SUM(qty) + COUNT(*)
FROM orders WHERE id <> 15 GROUP BY MOD(id, 3), CASE WHEN qty > 2 THEN 'many' WHEN qty IS NULL THEN '?' ELSE 'few' END, 'constant';
