-- A changelog as it is in the end.
-- record: batch
-- streams here
CREATE VIEW numbers AS SELECT * FROM (VALUES
  (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT)), (4, 'c', -5), (5, CAST(NULL AS STRING), 7), (6, 'b', 20), (7, 'a', 1)
) AS t(id, k, v);

SELECT a.k, a.n, b.n FROM (SELECT k, COUNT(*) AS n FROM numbers GROUP BY k) a FULL JOIN (SELECT k, MAX(v) AS n FROM numbers WHERE v < 10 GROUP BY k) b ON a.k = b.k;
