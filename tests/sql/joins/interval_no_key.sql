CREATE TABLE payments (
  id INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');

SELECT a.id, b.id FROM payments a, payments b WHERE b.ts BETWEEN a.ts - INTERVAL '9' SECOND AND a.ts + INTERVAL '9' SECOND AND a.id < b.id;
