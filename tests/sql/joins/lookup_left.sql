-- Rows without anything in the file are there, and so are those with a null key.
CREATE TABLE payments (id INT, amount INT, currency STRING, pt AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE side (key BIGINT, `value` STRING) WITH ('connector' = 'filesystem', 'path' = 'data/side_input.csv', 'format' = 'csv');
SELECT p.id, p.currency, s.`value` FROM payments p LEFT JOIN side FOR SYSTEM_TIME AS OF p.pt AS s ON CHAR_LENGTH(p.currency) + p.amount = s.key AND p.id <> 2;
