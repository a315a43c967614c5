CREATE TABLE t (id INT, a STRING, n INT, xs ARRAY<INT>) WITH (
  'connector' = 'filesystem', 'path' = 'data/options.csv', 'format' = 'csv', 'csv.field-delimiter' = '|', 'csv.quote-character' = '''', 'csv.escape-character' = '^',
  'csv.null-literal' = 'n/a', 'csv.allow-comments' = 'true', 'csv.array-element-delimiter' = ';', 'csv.ignore-parse-errors' = 'true'
);
SELECT id, a, n, CAST(xs AS STRING) FROM t;
