-- The columns that both have stand once.
SELECT k, m, x, y FROM (VALUES (1, 'a', 2), (2, 'b', 3)) AS l(k, x, m) JOIN (VALUES (1, 2, 'c'), (2, 4, 'd')) AS r(k, m, y) USING (k, m);
