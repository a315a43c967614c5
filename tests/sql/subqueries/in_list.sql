-- A long list, a list with null, and expressions in it.
SELECT x FROM (VALUES (1), (2), (30), (CAST(NULL AS INT)), (41)) AS t(x)
WHERE x IN (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41) OR x NOT IN (1, 2, NULL) OR x IN (x + 0 * x, 99) AND x > 29;
