-- Of numbers for which rounding plays no part.
SELECT k, VAR_POP(v), VAR_SAMP(v), STDDEV_POP(v), STDDEV_SAMP(v) FROM (VALUES
  (1, CAST(1 AS DOUBLE)), (1, CAST(3 AS DOUBLE)), (1, CAST(5 AS DOUBLE)), (1, CAST(7 AS DOUBLE)),
  (2, CAST(4 AS DOUBLE)), (3, CAST(NULL AS DOUBLE))
) AS t(k, v) GROUP BY k;
