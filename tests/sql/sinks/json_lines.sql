-- How JSON is written, to the letter.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');
CREATE TABLE written (sensor STRING, v DOUBLE, ts TIMESTAMP(3), pair ROW<x DECIMAL(10, 3), y ARRAY<STRING>>) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'json');
INSERT INTO written SELECT sensor, v, ts, ROW(CAST(1.500 AS DECIMAL(10, 3)), ARRAY[sensor, CAST(NULL AS STRING)]) FROM readings;
CREATE TABLE lines (line STRING) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'raw');
SELECT line FROM lines;
