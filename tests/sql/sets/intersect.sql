-- changes: Flink plans updates of every GROUP BY; of rows that are only inserted nothing is taken back when nothing is aggregated.
SELECT a FROM (VALUES (1), (2), (2), (CAST(NULL AS INT))) AS t(a)
INTERSECT SELECT b FROM (VALUES (2), (3), (CAST(NULL AS INT))) AS u(b);
