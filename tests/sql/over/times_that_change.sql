-- A row that gets another time leaves the range of some rows, and comes into that of others.
-- record: batch
-- streams here
CREATE TABLE scores (id INT, team STRING, points INT, ts TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'data/scores.json', 'format' = 'debezium-json');

SELECT id, team, points, SUM(points) OVER w, FIRST_VALUE(points) OVER w, COUNT(*) OVER w FROM scores
WINDOW w AS (PARTITION BY team ORDER BY ts RANGE BETWEEN INTERVAL '4' SECOND PRECEDING AND CURRENT ROW);
