-- Options and the name of a table change.
CREATE TABLE t (id INT, amount INT) WITH ('connector' = 'filesystem', 'path' = 'data/nothing.json', 'format' = 'json');
ALTER TABLE t SET ('path' = 'data/payments.json', 'json.ignore-parse-errors' = 'true');
ALTER TABLE t RESET ('json.ignore-parse-errors');
ALTER TABLE t RENAME TO u;
SELECT * FROM u;
