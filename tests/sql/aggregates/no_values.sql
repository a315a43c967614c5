-- Aggregates over no values are null, and the group is there.
SELECT k, COUNT(v), SUM(v), MIN(v), AVG(v) FROM (VALUES (1, CAST(NULL AS INT)), (1, CAST(NULL AS INT))) AS t(k, v)
GROUP BY k;
