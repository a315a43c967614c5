-- Both sides are aggregates of the same rows by the same windows and keys, of which one operator keeps all.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT a.window_start, a.item, a.n, a.buyers, b.total, b.dearest, b.big FROM (
  SELECT window_start, window_end, item, COUNT(*) AS n, COUNT(DISTINCT `user`) AS buyers
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND)) WHERE id <> 18 GROUP BY window_start, window_end, item
) a JOIN (
  SELECT window_start, window_end, item, SUM(qty) AS total, MAX(price) AS dearest, COUNT(*) FILTER (WHERE qty > 2) AS big
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND)) WHERE id <> 18 GROUP BY window_start, window_end, item
) b ON a.window_start = b.window_start AND a.window_end = b.window_end AND a.item = b.item;
