-- Records that cannot be read are left out.
CREATE TABLE t (id INT, v INT) WITH ('connector' = 'filesystem', 'path' = 'data/malformed.json', 'format' = 'json', 'json.ignore-parse-errors' = 'true');
SELECT id, v FROM t;
