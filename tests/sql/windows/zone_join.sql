-- Windows of a zone's hours, joined.
SET 'table.local-time-zone' = 'America/St_Johns';
CREATE TABLE clocks (id INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/dst.json', 'format' = 'json');

SELECT a.window_start, a.window_end, a.id, b.n FROM (SELECT * FROM TABLE(TUMBLE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '3' HOUR))) a
JOIN (
  SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '3' HOUR)) GROUP BY window_start, window_end
) b ON a.window_start = b.window_start AND a.window_end = b.window_end;
