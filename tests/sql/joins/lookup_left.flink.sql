-- Flink looks up nothing in files: this has the same result.
CREATE TABLE payments (id INT, amount INT, currency STRING)
WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE side (key BIGINT, `value` STRING) WITH ('connector' = 'filesystem', 'path' = 'data/side_input.csv', 'format' = 'csv');
SELECT p.id, p.currency, s.`value` FROM payments p LEFT JOIN side s ON CHAR_LENGTH(p.currency) + p.amount = s.key AND p.id <> 2;
