CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
CREATE TABLE shipments (
  order_id INT, carrier STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/shipments.json', 'format' = 'json');

SELECT kind, COUNT(*), MIN(ts), MAX(ts) FROM (
  SELECT 'order' AS kind, ts FROM orders UNION ALL SELECT 'shipment', ts FROM shipments UNION ALL SELECT 'order', ts FROM orders WHERE qty > 3
) GROUP BY kind;
