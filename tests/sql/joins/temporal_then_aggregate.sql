-- changes: Flink no longer knows the windows behind the join and updates a GROUP BY; here they close.
CREATE TABLE payments (
  id INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE rates (
  currency STRING, rate DECIMAL(10, 4), ts TIMESTAMP(3), WATERMARK FOR ts AS ts,
  PRIMARY KEY (currency) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'path' = 'data/rates.json', 'format' = 'json');

SELECT window_start, SUM(usd) FROM (
  SELECT window_start, window_end, p.amount * r.rate AS usd
  FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) p JOIN rates FOR SYSTEM_TIME AS OF p.window_time AS r ON p.currency = r.currency
) GROUP BY window_start, window_end;
