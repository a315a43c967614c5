-- Each row with its session, which is known when it ends.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '6' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');

SELECT sensor, v, ts, window_start, window_end, window_time
FROM TABLE(SESSION(TABLE readings PARTITION BY sensor, DESCRIPTOR(ts), INTERVAL '5' SECOND));
