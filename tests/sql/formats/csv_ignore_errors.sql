CREATE TABLE t (id INT, v INT, s STRING) WITH ('connector' = 'filesystem', 'path' = 'data/malformed.csv', 'format' = 'csv', 'csv.ignore-parse-errors' = 'true');
SELECT id, v, s FROM t WHERE id <> 3;
