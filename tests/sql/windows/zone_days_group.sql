-- The older form has them too.
SET 'table.local-time-zone' = 'Europe/Berlin';
CREATE TABLE clocks (id INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/dst.json', 'format' = 'json');

SELECT TUMBLE_START(ts, INTERVAL '1' DAY), TUMBLE_ROWTIME(ts, INTERVAL '1' DAY), COUNT(*) FROM clocks GROUP BY TUMBLE(ts, INTERVAL '1' DAY);
