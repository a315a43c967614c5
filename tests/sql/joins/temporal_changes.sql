-- A rate that is deleted is none from then on.
CREATE TABLE payments (
  id INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE rates (
  currency STRING, rate DECIMAL(10, 4), ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (currency) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'path' = 'data/rate_changes.json', 'format' = 'debezium-json');

SELECT p.id, p.currency, r.rate, r.ts FROM payments p LEFT JOIN rates FOR SYSTEM_TIME AS OF p.ts AS r ON p.currency = r.currency;
