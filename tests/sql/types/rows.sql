-- Rows in rows, compared, with null in them, and their fields.
SELECT r, r.a, r.b.c, r = ROW(1, ROW('x')), r.b IS NULL, ROW(r.a, CAST(NULL AS INT)) FROM (
  SELECT CAST(ROW(x, ROW(y)) AS ROW<a INT, b ROW<c STRING>>) AS r FROM (VALUES (1, 'x'), (2, CAST(NULL AS STRING)), (CAST(NULL AS INT), 'z')) AS t(x, y)
);
