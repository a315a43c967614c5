-- The versions are a view of the last row of each key.
-- not in batch mode: Flink cannot plan it there.
CREATE TABLE payments (
  id INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');

CREATE TABLE history (currency STRING, rate DECIMAL(10, 4), ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/rates.json', 'format' = 'json');
CREATE VIEW rates AS SELECT currency, rate, ts FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY ts DESC) AS rn FROM history
) WHERE rn = 1;
SELECT p.id, p.amount * r.rate FROM payments p JOIN rates FOR SYSTEM_TIME AS OF p.ts AS r ON p.currency = r.currency;
