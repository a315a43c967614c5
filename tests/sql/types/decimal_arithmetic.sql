-- Precision and scale of what is computed of decimals.
SELECT a + b, a - b, a * b, a / b, MOD(a, b), a * c, a / c, a + 1, b * 2.5, ROUND(a, 1), FLOOR(a), CEIL(b), SIGN(b), ABS(b), -b, a > c, TRUNCATE(a, 1) FROM (VALUES
  (CAST(12.345 AS DECIMAL(10, 3)), CAST(-7.1 AS DECIMAL(5, 1)), CAST(3 AS DECIMAL(38, 0))),
  (CAST(0.001 AS DECIMAL(10, 3)), CAST(9999.9 AS DECIMAL(5, 1)), CAST(-1 AS DECIMAL(38, 0))),
  (CAST(NULL AS DECIMAL(10, 3)), CAST(1 AS DECIMAL(5, 1)), CAST(1 AS DECIMAL(38, 0)))
) AS t(a, b, c);
