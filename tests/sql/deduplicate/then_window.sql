-- The first rows by time have their time still.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

CREATE VIEW firsts AS SELECT id, item, ts FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY item, `user` ORDER BY ts ASC) AS rn FROM orders
) WHERE rn = 1;
SELECT window_start, COUNT(*), MIN(id) FROM TABLE(TUMBLE(TABLE firsts, DESCRIPTOR(ts), INTERVAL '30' SECOND))
GROUP BY window_start, window_end;
