-- A row that was pushed out and then deleted does not come back (FLINK-27418).
-- R10
CREATE TABLE t (id INT, v INT) WITH ('connector' = 'filesystem', 'path' = 'data/pushed_out.json', 'format' = 'debezium-json');
SELECT id, v FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY v DESC) AS rn FROM t) WHERE rn = 1;
