CREATE TABLE early (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/old.json', 'format' = 'json');
SELECT window_start, window_end, COUNT(*)
FROM TABLE(CUMULATE(TABLE early, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND))
GROUP BY window_start, window_end;
