-- Flink forgets what was before the overflow: its sum begins anew with the next row.
SELECT k, s, n FROM (VALUES
  (1, CAST('99999999999999999999999999999999998.999' AS DECIMAL(38, 3)), CAST(3 AS BIGINT)),
  (2, CAST(NULL AS DECIMAL(38, 3)), CAST(2 AS BIGINT)), (3, CAST(NULL AS DECIMAL(38, 3)), CAST(0 AS BIGINT))
) AS t(k, s, n);
