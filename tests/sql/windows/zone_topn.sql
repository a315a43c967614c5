-- What comes of windows of a zone's days ends with them.
SET 'table.local-time-zone' = 'Europe/Berlin';
CREATE TABLE clocks (id INT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/dst.json', 'format' = 'json');

SELECT window_start, id, rn FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY id DESC) AS rn
  FROM TABLE(TUMBLE(TABLE clocks, DESCRIPTOR(ts), INTERVAL '1' DAY))
) WHERE rn <= 2;
