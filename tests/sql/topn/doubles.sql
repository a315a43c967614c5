-- Nulls are the least; then come numbers, and not-a-number is the greatest.
SELECT g, id, rn FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC, id) AS rn FROM (VALUES
    (1, 1, CAST('NaN' AS DOUBLE)), (1, 2, CAST('Infinity' AS DOUBLE)), (1, 3, CAST('-Infinity' AS DOUBLE)), (1, 4, CAST(NULL AS DOUBLE)), (1, 5, 0E0),
    (2, 6, CAST(NULL AS DOUBLE)), (2, 7, CAST('-Infinity' AS DOUBLE)), (2, 8, 1E308)
  ) AS t(g, id, x)
) WHERE rn <= 4;
