CREATE TABLE payments (
  id INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');

SELECT a.id, b.id FROM payments a LEFT JOIN payments b
ON a.currency = b.currency AND b.ts BETWEEN a.ts + INTERVAL '1' SECOND AND a.ts + INTERVAL '1' HOUR AND b.amount <> 30;
