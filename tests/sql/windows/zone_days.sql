-- Days of the session's time zone, in two of which clocks are changed.
SET 'table.local-time-zone' = 'Europe/Berlin';
CREATE TABLE clocks (id INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/dst.json', 'format' = 'json');

SELECT window_start, window_end, COUNT(*), MIN(id), MAX(id)
FROM TABLE(TUMBLE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY window_start, window_end;
