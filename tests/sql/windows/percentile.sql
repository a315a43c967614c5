-- Values of each window, with nulls among them.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '6' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');

SELECT window_start, sensor, PERCENTILE(v, 0.5), CAST(PERCENTILE(v, ARRAY[0.0, 1.0]) AS STRING)
FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) WHERE sensor IN ('b', 'c') AND (v > 1 OR v < -1 OR v IS NULL)
GROUP BY window_start, window_end, sensor;
