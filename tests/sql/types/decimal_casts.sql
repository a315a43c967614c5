-- Decimals are rounded, and are null where they do not fit.
SELECT x, CAST(x AS DECIMAL(6, 2)), CAST(x AS DECIMAL(4, 0)), CAST(x AS INT), CAST(x AS DOUBLE), CAST(CAST(x AS DOUBLE) AS DECIMAL(10, 3)), CAST(x AS STRING)
FROM (VALUES (CAST(1234.5678 AS DECIMAL(10, 4))), (-0.5550), (0.005), (-99999.9999), (CAST(NULL AS DECIMAL(10, 4)))) AS t(x);
