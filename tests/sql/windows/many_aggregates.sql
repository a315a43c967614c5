-- Aggregates that keep more than a number.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT window_start, FIRST_VALUE(item), LAST_VALUE(item), LISTAGG(`user`, '/'), AVG(price), AVG(qty),
  MIN(item), MAX(`user`), MIN(ts), MAX(ts)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND)) WHERE id <> 15
GROUP BY window_start, window_end;
