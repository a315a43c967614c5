-- The last by time of rows that are deleted too: the one before comes back.
CREATE TABLE scores (
  id INT, team STRING, points INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/scores.json', 'format' = 'debezium-json');

SELECT team, id, points, ts FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY team ORDER BY ts DESC) AS rn FROM scores
) WHERE rn = 1;
