-- In Flink the conversion ends the job.
SELECT id, b, d FROM (VALUES
  (1, CAST(NULL AS BOOLEAN), CAST(1.0 AS DOUBLE)), (2, TRUE, CAST(NULL AS DOUBLE)), (3, CAST(NULL AS BOOLEAN), CAST(NULL AS DOUBLE))
) AS t(id, b, d);
