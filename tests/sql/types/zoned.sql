-- A point in time on clocks of a zone, around changes of clocks.
SET 'table.local-time-zone' = 'Europe/Berlin';
CREATE TABLE clocks (id INT, ms BIGINT) WITH ('connector' = 'filesystem', 'path' = 'data/dst.json', 'format' = 'json');
SELECT id, TO_TIMESTAMP_LTZ(ms, 3), CAST(TO_TIMESTAMP_LTZ(ms, 3) AS STRING), CAST(TO_TIMESTAMP_LTZ(ms, 3) AS TIMESTAMP(3)), CAST(TO_TIMESTAMP_LTZ(ms, 3) AS DATE),
  HOUR(TO_TIMESTAMP_LTZ(ms, 3)), DATE_FORMAT(TO_TIMESTAMP_LTZ(ms, 3), 'dd.MM. HH:mm'), FROM_UNIXTIME(ms / 1000) FROM clocks;
