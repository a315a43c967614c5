-- Rows out of order join sessions that were apart.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '6' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');

SELECT window_start, window_end, sensor, COUNT(*), SUM(v), MIN(v)
FROM TABLE(SESSION(TABLE readings PARTITION BY sensor, DESCRIPTOR(ts), INTERVAL '5' SECOND))
GROUP BY window_start, window_end, sensor;
