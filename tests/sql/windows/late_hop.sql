-- A row that is late for one window counts in every other that is open (FLINK-21305).
-- R17, R22
CREATE TABLE late (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/late_for_one.json', 'format' = 'json');

SELECT window_start, window_end, COUNT(*), MAX(id)
FROM TABLE(HOP(TABLE late, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
