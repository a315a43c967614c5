CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT window_start, window_end, id, qty FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end, window_start ORDER BY qty DESC, id DESC) AS rn
  FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '40' SECOND)) WHERE qty IS NOT NULL
) WHERE rn < 3;
