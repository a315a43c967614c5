SELECT id, x, n FROM (VALUES (1, ARRAY['a', 'b', 'a'])) AS t(id, xs)
CROSS JOIN UNNEST(t.xs) WITH ORDINALITY AS u(x, n);
