-- Numbers of a file go through no double (FLINK-20170).
-- R28
CREATE TABLE numbers (a DECIMAL(38, 18), b BIGINT, c DECIMAL(20, 10)) WITH ('connector' = 'filesystem', 'path' = 'data/numbers.json', 'format' = 'json');
SELECT a, b, c, a + c, CAST(a AS STRING) FROM numbers;
