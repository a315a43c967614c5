-- Without what is null, and with times as the standard has them.
CREATE TABLE readings (sensor STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/readings.json', 'format' = 'json');
CREATE TABLE written (sensor STRING, v DOUBLE, ts TIMESTAMP(3)) WITH (
  'connector' = 'filesystem', 'path' = 'out/written', 'format' = 'json', 'json.encode.ignore-null-fields' = 'true', 'json.timestamp-format.standard' = 'ISO-8601'
);
INSERT INTO written SELECT sensor, v, ts FROM readings;
CREATE TABLE lines (line STRING) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'raw');
SELECT line FROM lines;
