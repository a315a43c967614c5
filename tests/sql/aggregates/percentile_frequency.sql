-- A value may count often; less than once is not at all.
SELECT k, PERCENTILE(v, 0.5, n), CAST(PERCENTILE(v, ARRAY[0.0, 0.75], n) AS STRING) FROM (VALUES
  ('a', 10, 3), ('a', 20, 1), ('a', 30, 0), ('a', 40, -1), ('a', 50, CAST(NULL AS INT)), ('b', 1, 1), ('b', 2, 1000000), ('c', CAST(NULL AS INT), 5)
) AS t(k, v, n) GROUP BY k;
