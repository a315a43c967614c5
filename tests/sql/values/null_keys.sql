-- Nulls are one group, and equal nothing in a condition.
CREATE VIEW numbers AS SELECT * FROM (VALUES
  (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT)), (4, 'c', -5), (5, CAST(NULL AS STRING), 7), (6, 'b', 20), (7, 'a', 1)
) AS t(id, k, v);
SELECT k, COUNT(*) FROM numbers WHERE k IS NULL OR k <> 'a' GROUP BY k;
