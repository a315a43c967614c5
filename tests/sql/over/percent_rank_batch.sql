-- Places of rows as parts of all, among equal ones and nulls.
-- record: batch
CREATE VIEW numbers AS SELECT * FROM (VALUES
  (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT)), (4, 'c', -5), (5, CAST(NULL AS STRING), 7), (6, 'b', 20), (7, 'a', 1)
) AS t(id, k, v);

SELECT id, v, PERCENT_RANK() OVER w, CUME_DIST() OVER w, PERCENT_RANK() OVER (PARTITION BY k ORDER BY id DESC),
  CUME_DIST() OVER (PARTITION BY k ORDER BY v) FROM numbers WINDOW w AS (ORDER BY v);
