CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
CREATE TABLE shipments (
  order_id INT, carrier STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/shipments.json', 'format' = 'json');

SELECT o.id, s.order_id, s.carrier FROM (SELECT * FROM orders WHERE id NOT IN (9, 12, 18)) o
FULL JOIN (SELECT * FROM shipments WHERE order_id IS DISTINCT FROM 12) s
ON o.id = s.order_id AND o.ts BETWEEN s.ts - INTERVAL '8' SECOND AND s.ts - INTERVAL '1' SECOND;
