-- What comes of OVER has its time still.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

CREATE VIEW totals AS SELECT ts, item, SUM(price) OVER (PARTITION BY item ORDER BY ts) AS total FROM orders;
SELECT window_start, item, MAX(total)
FROM TABLE(TUMBLE(TABLE totals, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, item;
