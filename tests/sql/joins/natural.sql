SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) AS l(k, x) NATURAL LEFT JOIN (VALUES (1, 'c'), (1, 'd'), (4, 'e')) AS r(k, y);
