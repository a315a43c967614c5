-- What was made null by one outer join is joined by the next.
SELECT a.x, b.y, c.z FROM (VALUES (1), (2), (3)) AS a(x)
LEFT JOIN (VALUES (2, 20), (3, 30)) AS b(x, y) ON a.x = b.x
FULL JOIN (VALUES (20, 'p'), (40, 'q')) AS c(y, z) ON b.y = c.y;
