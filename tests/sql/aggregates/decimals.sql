-- Sums and averages of decimals have Flink's precision and scale.
SELECT k, SUM(v), AVG(v), MAX(v), SUM(w), AVG(w) FROM (VALUES
  (1, CAST(1.10 AS DECIMAL(5, 2)), CAST(0.1 AS DOUBLE)), (1, CAST(2.25 AS DECIMAL(5, 2)), CAST(0.25 AS DOUBLE)),
  (2, CAST(999.99 AS DECIMAL(5, 2)), CAST(NULL AS DOUBLE)), (2, CAST(NULL AS DECIMAL(5, 2)), CAST(-1.5 AS DOUBLE))
) AS t(k, v, w) GROUP BY k;
