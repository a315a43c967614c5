-- Overlapping windows of local time, one of which ends in the hour that is left out.
SET 'table.local-time-zone' = 'America/Los_Angeles';
CREATE TABLE clocks (
  id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/clocks.json', 'format' = 'json');
SELECT window_start, window_end, window_time, COUNT(*), MIN(id)
FROM TABLE(HOP(TABLE clocks, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '2' HOUR))
GROUP BY window_start, window_end, window_time;
