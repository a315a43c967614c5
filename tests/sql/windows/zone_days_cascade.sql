-- The time of a window is a point in time again.
SET 'table.local-time-zone' = 'Europe/Berlin';
CREATE TABLE clocks (id INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/dst.json', 'format' = 'json');

CREATE VIEW days AS SELECT window_time AS wt, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY window_start, window_end, window_time;
SELECT window_start, window_end, window_time, SUM(n) FROM TABLE(CUMULATE(TABLE days, DESCRIPTOR(wt), INTERVAL '2' DAY, INTERVAL '4' DAY))
GROUP BY window_start, window_end, window_time;
