-- Both sides are aggregates of the same windows.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
CREATE TABLE shipments (
  order_id INT, carrier STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/shipments.json', 'format' = 'json');

SELECT o.window_start, o.n, s.n FROM (
  SELECT window_start, window_end, COUNT(*) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE id <> 18 GROUP BY window_start, window_end
) o FULL JOIN (
  SELECT window_start, window_end, COUNT(*) AS n
  FROM TABLE(TUMBLE(TABLE shipments, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE order_id <> 12 GROUP BY window_start, window_end
) s ON o.window_start = s.window_start AND o.window_end = s.window_end;
