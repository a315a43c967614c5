-- Zero and minus zero are two keys, not-a-number is one. Flink knows no minus zero among constants.
CREATE TABLE payments (id INT, currency STRING, amount INT) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
SELECT k, k / k, COUNT(*) FROM (SELECT CAST(amount - amount AS DOUBLE) * (2 - id) AS k FROM payments) GROUP BY k, k / k;
