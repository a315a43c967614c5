-- A sum that did not fit is there again once it does.
-- R02
CREATE TABLE t (k INT, a DECIMAL(38, 3)) WITH ('connector' = 'filesystem', 'path' = 'data/decimal_overflow.json', 'format' = 'json');
SELECT k, SUM(a), COUNT(a) FROM t GROUP BY k;
