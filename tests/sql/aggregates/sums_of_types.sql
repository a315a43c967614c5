-- Sums and averages have the type of what is added up, and wrap in it.
SELECT SUM(ti), AVG(ti), SUM(si), AVG(si), SUM(f), AVG(f), SUM(d), AVG(d), SUM(bi), AVG(bi) FROM (VALUES
  (CAST(100 AS TINYINT), CAST(30000 AS SMALLINT), CAST(0.5 AS FLOAT), CAST(0.5 AS DOUBLE), CAST(-5 AS BIGINT)),
  (CAST(100 AS TINYINT), CAST(30000 AS SMALLINT), CAST(1.25 AS FLOAT), CAST(-1.25 AS DOUBLE), CAST(2 AS BIGINT))
) AS t(ti, si, f, d, bi);
