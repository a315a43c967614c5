-- What spreadsheets write: quotes, line breaks in them, a carriage return at the end.
-- R30
CREATE TABLE t (id INT, a STRING, b STRING) WITH ('connector' = 'filesystem', 'path' = 'data/quoted.csv', 'format' = 'csv');
SELECT id, REPLACE(a, CHR(10), '⏎'), b, a IS NULL, b IS NULL, CHAR_LENGTH(b) FROM t;
