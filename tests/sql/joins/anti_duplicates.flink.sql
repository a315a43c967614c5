-- Flink cannot plan the other form for VALUES.
SELECT a.k, a.x FROM (VALUES (1, 'p'), (1, 'p'), (2, 'q'), (2, 'q'), (CAST(NULL AS INT), 'r')) AS a(k, x)
LEFT JOIN (SELECT DISTINCT k FROM (VALUES (1), (1), (CAST(NULL AS INT))) AS t(k)) AS b ON a.k = b.k WHERE b.k IS NULL;
