SELECT id, a, b FROM (VALUES (1, ARRAY[ROW(1, 'x'), ROW(2, 'y')])) AS t(id, rs) CROSS JOIN UNNEST(t.rs) AS u(a, b);
