-- not in batch mode: Flink has no sessions there.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT SESSION_START(ts, INTERVAL '5' SECOND), SESSION_END(ts, INTERVAL '5' SECOND), SESSION_ROWTIME(ts, INTERVAL '5' SECOND),
  item, COUNT(*), LISTAGG(`user`)
FROM orders GROUP BY item, SESSION(ts, INTERVAL '5' SECOND);
