-- Infinity and not-a-number in comparisons and arithmetic.
SELECT x, x = y, x > y, x < y, x <> y, x + y, x * 0, CAST(x AS INT) FROM (
  SELECT CAST(a AS DOUBLE) AS x, CAST(b AS DOUBLE) AS y FROM (VALUES ('NaN', '1'), ('Infinity', '-Infinity'), ('-0.0', '0.0'), ('NaN', 'NaN'), ('1', 'NaN')) AS t(a, b)
);
