-- Of doubles among which there are nulls.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '6' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');

SELECT window_start, sensor, COUNT(v), SUM(v), AVG(v), VAR_POP(v), STDDEV_SAMP(v)
FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) WHERE sensor IN ('b', 'c') AND (v > 1 OR v < -1 OR v IS NULL)
GROUP BY window_start, window_end, sensor;
