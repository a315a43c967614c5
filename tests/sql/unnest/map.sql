SELECT id, k, v FROM (VALUES (1, MAP['a', 1, 'b', 2])) AS t(id, m) CROSS JOIN UNNEST(t.m) AS u(k, v);
