-- A condition above an outer join leaves out what it made null.
SELECT a.x, b.y FROM (VALUES (1), (2), (3)) AS a(x) LEFT JOIN (VALUES (2, 20), (3, CAST(NULL AS INT))) AS b(x, y) ON a.x = b.x
WHERE b.y IS NULL;
