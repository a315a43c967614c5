-- How far event time had come before each row.
-- not in batch mode: there are no watermarks.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');
SELECT sensor, ts, CURRENT_WATERMARK(ts), ts <= CURRENT_WATERMARK(ts) FROM readings;
