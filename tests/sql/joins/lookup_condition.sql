CREATE TABLE payments (id INT, amount INT, currency STRING, pt AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE side (key BIGINT, `value` STRING) WITH ('connector' = 'filesystem', 'path' = 'data/side_input.csv', 'format' = 'csv');
SELECT p.id, s.`value` FROM payments p JOIN side FOR SYSTEM_TIME AS OF p.pt AS s ON p.amount = s.key AND s.`value` LIKE '%1%' WHERE s.`value` <> '10';
