-- The event time is computed of a number.
CREATE TABLE clocks (id INT, ms BIGINT, ts AS TO_TIMESTAMP(FROM_UNIXTIME(ms / 1000)), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'data/dst.json', 'format' = 'json');
SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY window_start, window_end;
