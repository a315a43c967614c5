CREATE TABLE clocks (id INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/dst.json', 'format' = 'json');

SELECT window_start, window_end, window_time, COUNT(*) FROM TABLE(HOP(TABLE clocks, DESCRIPTOR(ts), INTERVAL '12' HOUR, INTERVAL '1' DAY)) GROUP BY window_start, window_end, window_time;
