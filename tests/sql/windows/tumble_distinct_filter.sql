CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT window_start, COUNT(DISTINCT item) FILTER (WHERE qty > 1), COUNT(DISTINCT `user`), SUM(qty) FILTER (WHERE price > 1),
  COUNT(*) FILTER (WHERE `user` IS NULL)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY window_start, window_end;
