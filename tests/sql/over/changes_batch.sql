-- Rows that were changed, as they are in the end.
-- record: batch
-- streams here
CREATE VIEW numbers AS SELECT * FROM (VALUES
  (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT)), (4, 'c', -5), (5, CAST(NULL AS STRING), 7), (6, 'b', 20), (7, 'a', 1)
) AS t(id, k, v);

SELECT k, n, SUM(n) OVER (ORDER BY k), total - LAG(total) OVER (ORDER BY k) FROM (
  SELECT k, COUNT(*) AS n, SUM(v) AS total FROM numbers WHERE k IS NOT NULL GROUP BY k
);
