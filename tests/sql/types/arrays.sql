-- Arrays of rows and of arrays, elements that are not there, and what arrays are made of.
SELECT CAST(a AS STRING), a[1], a[4], CARDINALITY(a), ARRAY_CONTAINS(a, 3), CAST(ARRAY[a, ARRAY[7]] AS STRING), ELEMENT(ARRAY[x]), CAST(ARRAY_DISTINCT(a) AS STRING),
  CAST(ARRAY_REVERSE(a) AS STRING), ARRAY_POSITION(a, 3), CAST(ARRAY[CAST(x AS BIGINT), 1] AS STRING)
FROM (SELECT x, ARRAY[x, 3, x] AS a FROM (VALUES (1), (3), (CAST(NULL AS INT))) AS t(x));
