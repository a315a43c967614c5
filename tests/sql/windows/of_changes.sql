-- Windows of rows that are updated and deleted.
CREATE TABLE scores (
  id INT, team STRING, points INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/scores.json', 'format' = 'debezium-json');

SELECT window_start, team, COUNT(*), SUM(points), COUNT(DISTINCT points)
FROM TABLE(TUMBLE(TABLE scores, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, team;
