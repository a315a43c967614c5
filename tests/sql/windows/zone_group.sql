-- Windows of GROUP BY, in local time.
SET 'table.local-time-zone' = 'America/Los_Angeles';
CREATE TABLE clocks (
  id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/clocks.json', 'format' = 'json');
SELECT HOP_START(ts, INTERVAL '1' HOUR, INTERVAL '2' HOUR), HOP_END(ts, INTERVAL '1' HOUR, INTERVAL '2' HOUR),
  HOP_ROWTIME(ts, INTERVAL '1' HOUR, INTERVAL '2' HOUR), COUNT(*)
FROM clocks
GROUP BY HOP(ts, INTERVAL '1' HOUR, INTERVAL '2' HOUR);
