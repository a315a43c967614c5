-- changes: Flink plans updates of every GROUP BY; of rows that are only inserted nothing is taken back when nothing is aggregated.
CREATE VIEW numbers AS SELECT * FROM (VALUES
  (1, 'a', 10), (2, 'b', 20), (3, 'a', CAST(NULL AS INT)), (4, 'c', -5), (5, CAST(NULL AS STRING), 7), (6, 'b', 20), (7, 'a', 1)
) AS t(id, k, v);
SELECT k, v FROM numbers UNION SELECT k, v FROM numbers WHERE v = 20;
