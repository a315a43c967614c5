SELECT a.x, b.y FROM (VALUES (1), (5), (CAST(NULL AS INT))) AS a(x) FULL JOIN (VALUES (3), (7), (0)) AS b(y) ON a.x > b.y;
