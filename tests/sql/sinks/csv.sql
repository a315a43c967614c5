-- What has to be quoted is; null and the empty text are two things where there is a word for null.
CREATE TABLE written (id INT, a STRING, n DECIMAL(8, 3), xs ARRAY<INT>) WITH (
  'connector' = 'filesystem', 'path' = 'out/written', 'format' = 'csv', 'csv.null-literal' = 'n/a', 'csv.field-delimiter' = '|'
);
INSERT INTO written VALUES
  (1, 'a|b', 1.5, ARRAY[1, 2]), (2, 'he said "hi"', -0.001, ARRAY[3]), (3, '', 0, ARRAY[4, 5]), (4, CAST(NULL AS STRING), CAST(NULL AS DECIMAL(8, 3)), ARRAY[7]),
  (5, ' é ', 12345.678, ARRAY[-1]), (6, 'it''s; it, is', 100, ARRAY[0]);
SELECT id, a, n, CAST(xs AS STRING), a IS NULL, CHAR_LENGTH(a) FROM written;
