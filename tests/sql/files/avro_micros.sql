-- Files of fastavro: the logical type says what the numbers are (FLINK-39036).
-- R29
CREATE TABLE t (id INT, micros TIMESTAMP(6), millis TIMESTAMP(3), `local` TIMESTAMP(6)) WITH (
  'connector' = 'filesystem', 'path' = 'data/micros.avro', 'format' = 'avro', 'avro.timestamp_mapping.legacy' = 'false'
);
SELECT id, micros, millis, `local` FROM t;
