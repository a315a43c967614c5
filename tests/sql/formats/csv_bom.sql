-- The mark that spreadsheets write in front is no part of the first value.
-- R30
CREATE TABLE t (id INT, a STRING) WITH ('connector' = 'filesystem', 'path' = 'data/bom.csv', 'format' = 'csv');
SELECT id, a FROM t;
