-- The first of few rows goes with them.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '6' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');

SELECT sensor, v, FIRST_VALUE(v) OVER w, LAST_VALUE(v) OVER w
FROM readings WINDOW w AS (PARTITION BY sensor ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW);
