-- Hopping windows over the results of small ones.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

CREATE VIEW small AS
SELECT window_time AS wt, `user`, SUM(price) AS spent
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND))
GROUP BY window_start, window_end, window_time, `user`;
SELECT window_start, window_end, `user`, SUM(spent)
FROM TABLE(HOP(TABLE small, DESCRIPTOR(wt), INTERVAL '20' SECOND, INTERVAL '40' SECOND))
GROUP BY window_start, window_end, `user`;
