SELECT id, CARDINALITY(inner_one), x FROM (VALUES (1, ARRAY[ARRAY[1, 2], ARRAY[3]]), (2, ARRAY[ARRAY[4, CAST(NULL AS INT)]])) AS t(id, xss)
CROSS JOIN UNNEST(xss) AS u(inner_one) CROSS JOIN UNNEST(inner_one) AS v(x);
