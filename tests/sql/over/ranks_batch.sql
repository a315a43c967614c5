-- record: batch
-- streams here
CREATE VIEW numbers AS SELECT * FROM (VALUES
  (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT)), (4, 'c', -5), (5, CAST(NULL AS STRING), 7), (6, 'b', 20), (7, 'a', 1)
) AS t(id, k, v);

SELECT id, v, RANK() OVER w, DENSE_RANK() OVER w, ROW_NUMBER() OVER (ORDER BY v DESC, id), NTILE(3) OVER (ORDER BY id) FROM numbers WINDOW w AS (ORDER BY v);
