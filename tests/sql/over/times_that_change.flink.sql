-- Flink cannot read changes in batch mode: these are the rows that they leave. Its code for a range of timestamps does not
-- compile there, so these are seconds.
CREATE VIEW scores AS SELECT * FROM (VALUES
  (1, CAST('red' AS STRING), 5, TIMESTAMP '2024-03-01 10:00:01.000'), (2, 'red', 4, TIMESTAMP '2024-03-01 10:00:04.000'),
  (3, 'blue', 9, TIMESTAMP '2024-03-01 10:00:08.000'), (5, 'blue', 2, TIMESTAMP '2024-03-01 10:00:31.000')
) AS t(id, team, points, ts);

SELECT id, team, points, SUM(points) OVER w, FIRST_VALUE(points) OVER w, COUNT(*) OVER w FROM (SELECT id, team, points, TIMESTAMPDIFF(SECOND, TIMESTAMP '2024-03-01 00:00:00', ts) AS s FROM scores)
WINDOW w AS (PARTITION BY team ORDER BY s RANGE BETWEEN 4 PRECEDING AND CURRENT ROW);
