-- Nothing is equal: a condition on the product of both.
CREATE VIEW numbers AS SELECT * FROM (VALUES
  (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT)), (4, 'c', -5), (5, CAST(NULL AS STRING), 7), (6, 'b', 20), (7, 'a', 1)
) AS t(id, k, v);

SELECT a.id, b.id FROM numbers a LEFT JOIN numbers b ON a.v < b.v AND a.id > b.id;
