-- What is grouped by windows may be computed, and what is shown of them too.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT DATE_FORMAT(window_start, 'HH:mm:ss'), UPPER(item), SUM(qty * price) / COUNT(*), window_end - INTERVAL '1' SECOND
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND)) WHERE id <> 15
GROUP BY window_start, window_end, UPPER(item);
