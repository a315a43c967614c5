-- Timestamps of pyarrow as INT96: whatever the zone of the machine, and beyond what nanoseconds reach.
-- R31
CREATE TABLE t (id INT, ts TIMESTAMP(6)) WITH ('connector' = 'filesystem', 'path' = 'data/int96.parquet', 'format' = 'parquet', 'parquet.utc-timezone' = 'true');
SELECT id, ts FROM t;
