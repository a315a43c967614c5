-- Sessions that touch are one.
CREATE TABLE payments (
  id INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
SELECT window_start, window_end, COUNT(*)
FROM TABLE(SESSION(TABLE payments, DESCRIPTOR(ts), INTERVAL '5' SECOND))
GROUP BY window_start, window_end;
