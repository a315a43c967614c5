-- The slower of two inputs says which windows are complete.
CREATE TABLE payments (
  id INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');

CREATE VIEW both_ways AS SELECT currency, amount, ts FROM payments UNION ALL SELECT 'all', -amount, ts FROM payments WHERE amount > 10;
SELECT window_start, currency, SUM(amount)
FROM TABLE(TUMBLE(TABLE both_ways, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, currency;
