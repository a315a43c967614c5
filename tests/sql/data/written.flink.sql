-- How written.parquet and written.avro were written by Flink 2.3 (with flink-sql-parquet, flink-sql-avro and hadoop-client on its class path), one file
-- each with parallelism 1.
-- Flink 2.3 writes times before 1970 as INT96 that are a second late.
CREATE TABLE p (id INT, name STRING, seen TIMESTAMP(3), near TIMESTAMP(9), price DECIMAL(10, 2), inner_row ROW<x INT, y STRING>) WITH ('connector' = 'filesystem', 'path' = 'out/parquet', 'format' = 'parquet');
INSERT INTO p VALUES (1, 'one', TIMESTAMP '2024-01-02 03:04:05.678', TIMESTAMP '2024-01-02 03:04:05.123456789', 1.25, ROW(1, 'a')), (2, 'zwölf', TIMESTAMP '1969-12-31 23:59:59.999', TIMESTAMP '1969-12-31 23:59:59.999999999', -0.01, ROW(2, 'b')), (3, CAST(NULL AS STRING), TIMESTAMP '9999-12-31 23:59:59.999', CAST(NULL AS TIMESTAMP(9)), CAST(NULL AS DECIMAL(10, 2)), CAST(NULL AS ROW<x INT, y STRING>));
CREATE TABLE a (id INT, name STRING, seen TIMESTAMP(3), price DECIMAL(10, 2), inner_row ROW<x INT, y STRING>) WITH ('connector' = 'filesystem', 'path' = 'out/avro', 'format' = 'avro');
INSERT INTO a VALUES (1, 'one', TIMESTAMP '2024-01-02 03:04:05.678', 1.25, ROW(1, 'a')), (2, 'zwölf', TIMESTAMP '1969-12-31 23:59:59.999', -0.01, ROW(2, 'b')), (3, CAST(NULL AS STRING), TIMESTAMP '9999-12-31 23:59:59.999', CAST(NULL AS DECIMAL(10, 2)), CAST(NULL AS ROW<x INT, y STRING>));
