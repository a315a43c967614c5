-- Windows over windows of local time, the first row of each, and a join: all end when the local time does.
SET 'table.local-time-zone' = 'America/Los_Angeles';
CREATE TABLE clocks (
  id INT, k INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'data/clocks.json', 'format' = 'json');
CREATE VIEW halves AS
SELECT window_time AS wt, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '30' MINUTE))
GROUP BY window_start, window_end, window_time;
CREATE VIEW hours AS
SELECT window_start, window_end, SUM(n) AS n
FROM TABLE(TUMBLE(TABLE halves, DESCRIPTOR(wt), INTERVAL '1' HOUR))
GROUP BY window_start, window_end;
CREATE VIEW firsts AS
SELECT id, window_start, window_end
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY id) AS rn
  FROM TABLE(TUMBLE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '1' HOUR))
)
WHERE rn = 1;
SELECT h.window_start, h.window_end, h.n, f.id
FROM hours AS h JOIN firsts AS f ON h.window_start = f.window_start AND h.window_end = f.window_end;
