-- Options that are those of one query.
CREATE TABLE t (id INT, v INT, s STRING) WITH ('connector' = 'filesystem', 'path' = 'data/nothing.csv', 'format' = 'csv');
SELECT id, v, s FROM t /*+ OPTIONS('path' = 'data/malformed.csv', 'csv.ignore-parse-errors' = 'true') */ WHERE v > 10;
