-- SUM of integers wraps, and AVG of integers is an integer.
SELECT SUM(a), SUM(b), AVG(a), AVG(c) FROM (VALUES
  (2147483647, 9223372036854775807, CAST(1 AS SMALLINT)), (1, 1, CAST(2 AS SMALLINT))
) AS t(a, b, c);
