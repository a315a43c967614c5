-- Windows over windows, by window_time.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
CREATE VIEW counts AS
SELECT window_time AS wt, item, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end, window_time, item;
SELECT window_start, window_end, SUM(n), MAX(n)
FROM TABLE(TUMBLE(TABLE counts, DESCRIPTOR(wt), INTERVAL '30' SECOND))
GROUP BY window_start, window_end;
