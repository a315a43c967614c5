-- Without rows a global aggregate is a row in batch mode.
-- record: batch
SELECT COUNT(*), COUNT(a), SUM(a), MAX(a), COUNT(DISTINCT a) FROM (VALUES (1), (2)) AS t(a) WHERE a > 2;
