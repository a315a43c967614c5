SELECT a.k, a.x FROM (VALUES (1, 'p'), (1, 'p'), (2, 'q'), (2, 'q'), (CAST(NULL AS INT), 'r')) AS a(k, x)
WHERE NOT EXISTS (SELECT * FROM (VALUES (1), (1), (CAST(NULL AS INT))) AS b(k) WHERE a.k = b.k);
