-- Between rows that are far apart there are no windows.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '6' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');

SELECT window_start, COUNT(*), COUNT(DISTINCT sensor)
FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '2' SECOND))
GROUP BY window_start, window_end;
