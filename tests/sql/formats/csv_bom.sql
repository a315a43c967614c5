CREATE TABLE t (id INT, a STRING) WITH ('connector' = 'filesystem', 'path' = 'data/bom.csv', 'format' = 'csv');
SELECT id, a FROM t;
