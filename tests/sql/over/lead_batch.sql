-- record: batch
-- streams here
CREATE VIEW numbers AS SELECT * FROM (VALUES
  (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT)), (4, 'c', -5), (5, CAST(NULL AS STRING), 7), (6, 'b', 20), (7, 'a', 1)
) AS t(id, k, v);

SELECT id, LEAD(v) OVER w, LEAD(id, 2) OVER w, LAG(id, 1, -1) OVER w, FIRST_VALUE(v) OVER w, LAST_VALUE(id) OVER w
FROM numbers WINDOW w AS (PARTITION BY k ORDER BY id);
