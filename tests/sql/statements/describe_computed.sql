-- What columns are computed of, event time and processing time.
CREATE TABLE t (id INT, twice AS id * 2, label AS UPPER('n' || CAST(id AS STRING)), ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'blackhole');
DESCRIBE t;
