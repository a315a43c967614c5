-- A late row is dropped as long as its key is known: for half the range longer than the frame has rows.
-- not in batch mode: Flink cannot compile such a range there.
CREATE TABLE late (id INT, k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'data/range_late.json', 'format' = 'json');

SELECT id, k, COUNT(*) OVER w, SUM(id) OVER w
FROM late WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW);
