-- Either time is a time still.
CREATE TABLE payments (
  id INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');

CREATE VIEW pairs AS SELECT a.id AS x, b.id AS y, b.ts FROM payments a JOIN payments b
ON a.currency = b.currency AND a.ts BETWEEN b.ts - INTERVAL '5' MINUTE AND b.ts;
SELECT window_start, COUNT(*), SUM(x - y) FROM TABLE(TUMBLE(TABLE pairs, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
