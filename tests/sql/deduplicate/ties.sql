-- Of rows of one time the last that came is the last, and the first is the first.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '6' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');

SELECT 'first', sensor, v, ts FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY sensor, ts ORDER BY ts ASC) AS rn FROM readings
) WHERE rn = 1
UNION ALL SELECT 'last', sensor, v, ts FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY sensor ORDER BY ts DESC) AS rn FROM readings
) WHERE rn = 1;
