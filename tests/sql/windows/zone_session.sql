-- Sessions of local time: those of the hour that is twice are one.
SET 'table.local-time-zone' = 'America/Los_Angeles';
CREATE TABLE clocks (
  id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/clocks.json', 'format' = 'json');
SELECT k, window_start, window_end, window_time, COUNT(*)
FROM TABLE(SESSION(TABLE clocks PARTITION BY k, DESCRIPTOR(ts), INTERVAL '30' MINUTE))
GROUP BY k, window_start, window_end, window_time;
