-- Pairs come once for each window that has both.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
CREATE TABLE shipments (
  order_id INT, carrier STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/shipments.json', 'format' = 'json');

SELECT o.window_start, o.window_end, o.id, s.carrier
FROM (SELECT * FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '40' SECOND)) WHERE id <> 18) o
INNER JOIN (SELECT * FROM TABLE(HOP(TABLE shipments, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '40' SECOND)) WHERE order_id IS DISTINCT FROM 12) s
ON o.window_start = s.window_start AND o.window_end = s.window_end AND o.id = s.order_id;
