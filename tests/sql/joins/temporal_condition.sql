-- What the version must fulfil beside the key.
CREATE TABLE payments (
  id INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE rates (
  currency STRING, rate DECIMAL(10, 4), ts TIMESTAMP(3), WATERMARK FOR ts AS ts,
  PRIMARY KEY (currency) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'path' = 'data/rates.json', 'format' = 'json');

SELECT p.id, r.rate FROM payments p LEFT JOIN rates FOR SYSTEM_TIME AS OF p.ts AS r ON p.currency = r.currency AND r.rate > 1.09 AND p.amount < 35;
