-- R17, R22
CREATE TABLE late (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/late_for_one.json', 'format' = 'json');

SELECT window_start, window_end, COUNT(*), MAX(id)
FROM TABLE(CUMULATE(TABLE late, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)) GROUP BY window_start, window_end;
