CREATE TABLE t (id INT, name STRING, score INT) WITH ('connector' = 'filesystem', 'path' = 'data/maxwell.json', 'format' = 'maxwell-json');
SELECT name, SUM(score), COUNT(*) FROM t GROUP BY name;
