-- Windows that grow through a day of 23 or 25 hours.
SET 'table.local-time-zone' = 'America/Los_Angeles';
CREATE TABLE clocks (
  id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/clocks.json', 'format' = 'json');
SELECT window_start, window_end, window_time, COUNT(*), MIN(id)
FROM TABLE(CUMULATE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '2' HOUR, INTERVAL '1' DAY))
GROUP BY window_start, window_end, window_time;
