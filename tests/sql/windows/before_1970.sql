-- Windows of times before the epoch begin where others do.
CREATE TABLE early (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/old.json', 'format' = 'json');
SELECT window_start, window_end, window_time, COUNT(*), MIN(id)
FROM TABLE(HOP(TABLE early, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))
GROUP BY window_start, window_end, window_time;
