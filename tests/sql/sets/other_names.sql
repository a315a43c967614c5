-- Columns have the names of the first query, whatever those of others are called, also where types differ.
CREATE VIEW pairs AS SELECT * FROM (VALUES (1, 2), (3, 4)) AS t(a, b);
SELECT a, b FROM pairs UNION ALL SELECT b, a FROM pairs UNION ALL SELECT CAST(5000000000 AS BIGINT), 6
UNION ALL SELECT CAST(a AS BIGINT), b FROM (SELECT a + 10 AS a, b FROM pairs UNION ALL SELECT b + 10, a FROM pairs);
