-- Windows of windows in the older form, by TUMBLE_ROWTIME.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT TUMBLE_START(rt, INTERVAL '1' MINUTE), TUMBLE_ROWTIME(rt, INTERVAL '1' MINUTE), SUM(n), COUNT(*)
FROM (
  SELECT TUMBLE_ROWTIME(ts, INTERVAL '10' SECOND) AS rt, item, COUNT(*) AS n
  FROM orders GROUP BY TUMBLE(ts, INTERVAL '10' SECOND), item
) GROUP BY TUMBLE(rt, INTERVAL '1' MINUTE);
