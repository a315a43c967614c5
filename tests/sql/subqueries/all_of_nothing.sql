-- All of no values are greater, and none is.
-- record: batch
CREATE VIEW numbers AS SELECT * FROM (VALUES
  (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT)), (4, 'c', -5), (5, CAST(NULL AS STRING), 7), (6, 'b', 20), (7, 'a', 1)
) AS t(id, k, v);

SELECT id FROM numbers WHERE v > ALL (SELECT v FROM numbers WHERE id > 9) AND NOT v < ANY (SELECT v FROM numbers WHERE id > 9);
