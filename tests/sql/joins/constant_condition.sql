-- Conditions that are always or never true.
SELECT a.x, b.y, c.z FROM (VALUES (1), (2)) AS a(x) LEFT JOIN (VALUES (3)) AS b(y) ON 1 = 2 JOIN (VALUES (4)) AS c(z) ON TRUE;
