-- record: batch
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT `user`, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY `user` ORDER BY ts DESC) AS rn FROM orders) WHERE rn = 1;
