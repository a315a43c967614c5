-- With the schema in each record.
CREATE TABLE t (id INT, name STRING, score INT) WITH (
  'connector' = 'filesystem', 'path' = 'data/debezium_schema.json', 'format' = 'debezium-json', 'debezium-json.schema-include' = 'true'
);
SELECT id, name, score FROM t;
