-- An aggregate over aggregates of the same windows.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT window_start, window_end, COUNT(*), MAX(n), SUM(total) FROM (
  SELECT window_start, window_end, item, COUNT(*) AS n, SUM(qty) AS total
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
  GROUP BY window_start, window_end, item
) GROUP BY window_start, window_end;
