-- Beside times and a key there is a condition.
CREATE TABLE payments (
  id INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');

SELECT a.id, b.id FROM payments a JOIN payments b
ON a.currency = b.currency AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL '2' MINUTE AND b.amount > a.amount + 5;
