CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
CREATE TABLE shipments (
  order_id INT, carrier STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/shipments.json', 'format' = 'json');
CREATE VIEW numbers AS SELECT * FROM (VALUES
  (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT)), (4, 'c', -5), (5, CAST(NULL AS STRING), 7), (6, 'b', 20), (7, 'a', 1)
) AS t(id, k, v);
SELECT o.id, s.carrier, n.k FROM orders o
JOIN shipments s ON o.id = s.order_id
LEFT JOIN numbers n ON n.id = o.id;
