-- Timestamps as the standard has them.
CREATE TABLE t (id INT, ltz TIMESTAMP_LTZ(3)) WITH ('connector' = 'filesystem', 'path' = 'data/types.json', 'format' = 'json', 'json.timestamp-format.standard' = 'SQL');
SELECT id, ltz FROM t WHERE id <> 9;
