SELECT id, x FROM (VALUES (1, ARRAY[7, 8]), (2, ARRAY[9])) AS t(id, xs) CROSS JOIN UNNEST(t.xs) AS u(x);
