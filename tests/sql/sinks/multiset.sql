-- A column of values with how often they are there.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');
CREATE TABLE bags (starts TIMESTAMP(3), sensors MULTISET<STRING>) WITH ('connector' = 'filesystem', 'path' = 'out/bags', 'format' = 'json');
INSERT INTO bags SELECT window_start, COLLECT(sensor) FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
SELECT starts, sensor, COUNT(*) FROM bags CROSS JOIN UNNEST(bags.sensors) AS u(sensor) GROUP BY starts, sensor;
