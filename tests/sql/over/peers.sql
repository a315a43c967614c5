-- Rows of one time are in each other's range, and not among each other's rows before.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '6' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');

SELECT sensor, v, ts, COUNT(*) OVER w, SUM(v) OVER w, MIN(v) OVER w
FROM readings WHERE sensor <> 'é' WINDOW w AS (PARTITION BY sensor ORDER BY ts RANGE BETWEEN INTERVAL '4' SECOND PRECEDING AND CURRENT ROW);
