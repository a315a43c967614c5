-- Keys that are computed, and of different types.
SELECT a.x, b.y FROM (VALUES (1, 'A'), (2, 'b'), (3, 'C')) AS a(x, s)
JOIN (VALUES (CAST(2 AS BIGINT), 'a'), (CAST(4 AS BIGINT), 'B'), (CAST(6 AS BIGINT), 'x')) AS b(y, s) ON a.x * 2 = b.y AND LOWER(a.s) = LOWER(b.s);
