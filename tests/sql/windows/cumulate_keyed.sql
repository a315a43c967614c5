-- With an offset and a key. Keys without rows in a step have no earlier results repeated in later windows.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT window_start, window_end, item, COUNT(*), COUNT(DISTINCT `user`), MAX(qty)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '60' SECOND, INTERVAL '10' SECOND))
GROUP BY window_start, window_end, item;
