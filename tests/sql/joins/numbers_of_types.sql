-- Numbers are equal whatever their types.
SELECT a.i, b.d, c.e FROM (VALUES (1), (2), (3)) AS a(i)
JOIN (VALUES (CAST(1.0 AS DECIMAL(10, 2))), (CAST(2.5 AS DECIMAL(10, 2))), (CAST(3.00 AS DECIMAL(10, 2)))) AS b(d) ON a.i = b.d
LEFT JOIN (VALUES (CAST(1 AS DOUBLE)), (3.5E0)) AS c(e) ON a.i = c.e;
