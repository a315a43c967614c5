-- not in batch mode: rows do not come one after the other there.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), pt AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');
SELECT sensor, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY sensor ORDER BY pt DESC) AS rn FROM readings) WHERE rn = 1;
