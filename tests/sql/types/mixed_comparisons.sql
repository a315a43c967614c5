-- Values of different types in one comparison.
SELECT 1 = 1.0, CAST(1 AS TINYINT) < 1.5E0, CAST(2 AS BIGINT) IN (1, 2.0), 0.1 = 0.1E0,
  CASE WHEN TRUE THEN 1 ELSE 2.5 END, COALESCE(CAST(NULL AS INT), 2.5E0), GREATEST(1, 2.5), NULLIF(1, 1.0) IS NULL, 'a' < 'B', 'a ' = 'a';
