CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
CREATE TABLE shipments (
  order_id INT, carrier STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/shipments.json', 'format' = 'json');

SELECT id FROM orders o WHERE EXISTS (
  SELECT 1 FROM shipments s WHERE s.order_id = o.id AND s.carrier IN (SELECT x FROM (VALUES ('ox'), ('yak')) AS c(x) WHERE x <> 'elk')
);
