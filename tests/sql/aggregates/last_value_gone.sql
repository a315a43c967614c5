-- The last value that is not null is taken back: nothing is left of it, but the group (FLINK-13216).
-- R12
CREATE TABLE t (k INT, v INT) WITH ('connector' = 'filesystem', 'path' = 'data/last_value_gone.json', 'format' = 'debezium-json');
SELECT k, MAX(v), MIN(v), SUM(v), AVG(v), LAST_VALUE(v), FIRST_VALUE(v), COUNT(v), COUNT(*), COUNT(DISTINCT v) FROM t GROUP BY k;
