-- A sum that does not fit is null, and the job lives.
-- R02
SELECT a + b, a * b, a - b, a / b FROM (VALUES
  (CAST('99999999999999999999999999999999999.999' AS DECIMAL(38, 3)), CAST(1.000 AS DECIMAL(38, 3))),
  (CAST(NULL AS DECIMAL(38, 3)), CAST(NULL AS DECIMAL(38, 3)))
) AS t(a, b);
