-- Lengths are of characters, also of those beyond the first 65,536 (FLINK-40350).
-- R05
SELECT LPAD(s, 1, 'x'), LPAD(s, 3, 'x'), RPAD(s, 3, 'é'), CHAR_LENGTH(s), OVERLAY(s || 'abc' PLACING 'X' FROM 2 FOR 1), SUBSTRING(s || 'b' FROM 2), REVERSE(s || 'b'), LEFT(s || 'b', 1) FROM (VALUES ('😀')) AS t(s);
