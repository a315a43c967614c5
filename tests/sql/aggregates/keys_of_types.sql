-- What is equal as a key: also rows, arrays, bytes and times.
SELECT k, COUNT(*) FROM (
  SELECT ROW(a, ARRAY[b, a]) AS k FROM (VALUES (1, 2), (1, 2), (1, CAST(NULL AS INT)), (1, CAST(NULL AS INT))) AS t(a, b)
) GROUP BY k;
