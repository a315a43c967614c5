-- IS NOT DISTINCT FROM takes null as a key.
SELECT a.x, b.y FROM (VALUES (1, 'p'), (CAST(NULL AS INT), 'q'), (2, 'r')) AS a(k, x)
JOIN (VALUES (1, 's'), (CAST(NULL AS INT), 't'), (3, 'u')) AS b(k, y) ON a.k IS NOT DISTINCT FROM b.k;
