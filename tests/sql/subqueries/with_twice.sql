-- One named query, read twice; one that hides a table.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

WITH totals AS (SELECT item, SUM(qty) AS total FROM orders WHERE id <> 15 GROUP BY item),
  orders AS (SELECT 'fig' AS item)
SELECT a.item, b.item FROM totals a JOIN totals b ON a.total < b.total WHERE a.item NOT IN (SELECT item FROM orders);
