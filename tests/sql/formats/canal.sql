-- Several rows a record; updates tell only what was before of the columns that changed.
CREATE TABLE t (id INT, name STRING, score INT) WITH (
  'connector' = 'filesystem', 'path' = 'data/canal.json', 'format' = 'canal-json', 'canal-json.table.include' = 't'
);
SELECT id, name, score FROM t;
