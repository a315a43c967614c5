-- Equal rows count as often as they are there, on each side.
SELECT a.k, a.x, b.y FROM (VALUES (1, 'p'), (1, 'p'), (2, 'q'), (CAST(NULL AS INT), 'r'), (CAST(NULL AS INT), 'r')) AS a(k, x)
FULL JOIN (VALUES (1, 's'), (1, 's'), (3, 't'), (CAST(NULL AS INT), 'u')) AS b(k, y) ON a.k = b.k;
