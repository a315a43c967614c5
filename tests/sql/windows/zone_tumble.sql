-- Hours of local time on the days on which clocks go forward and back: one is left out, and one is twice.
SET 'table.local-time-zone' = 'America/Los_Angeles';
CREATE TABLE clocks (
  id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/clocks.json', 'format' = 'json');
SELECT window_start, window_end, window_time, COUNT(*), MIN(id)
FROM TABLE(TUMBLE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, window_time;
