-- Hours where clocks are half an hour off those of others.
SET 'table.local-time-zone' = 'Asia/Kolkata';
CREATE TABLE clocks (id INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/dst.json', 'format' = 'json');

SELECT window_start, window_end, window_time, COUNT(*)
FROM TABLE(HOP(TABLE clocks, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '2' HOUR)) GROUP BY window_start, window_end, window_time;
