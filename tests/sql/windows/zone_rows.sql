-- Rows with the windows of local time that they are in.
SET 'table.local-time-zone' = 'America/Los_Angeles';
CREATE TABLE clocks (
  id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/clocks.json', 'format' = 'json');
SELECT id, ts, window_start, window_end, window_time
FROM TABLE(TUMBLE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '1' HOUR));
