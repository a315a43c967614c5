-- The order does not show, but a limit of it does.
-- record: batch
-- streams here
SELECT x, y FROM (VALUES (CAST(0.0 AS DOUBLE), 'a'), (CAST('NaN' AS DOUBLE), 'b'), (CAST(NULL AS DOUBLE), 'c'), (CAST(-1E300 AS DOUBLE), 'd')) AS t(x, y) ORDER BY x DESC, y LIMIT 3;
