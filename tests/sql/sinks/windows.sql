-- What windows result in is never taken back, so any file can take it.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');
CREATE TABLE counts (sensor STRING, ends TIMESTAMP(3), n BIGINT, low DOUBLE) WITH ('connector' = 'filesystem', 'path' = 'out/counts', 'format' = 'csv', 'csv.null-literal' = 'null');
INSERT INTO counts SELECT sensor, window_end, COUNT(*), MIN(v + 1) FROM TABLE(HOP(TABLE readings, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY sensor, window_start, window_end;
SELECT sensor, ends, n, low FROM counts;
