SELECT m['a'], m['é'], CARDINALITY(m), CAST(MAP_KEYS(m) AS STRING), CAST(MAP_VALUES(m) AS STRING), CAST(m AS STRING), MAP[x, 'v'][x] FROM (
  SELECT x, MAP['a', x, 'é', x + 1] AS m FROM (VALUES (1), (2147483647)) AS t(x));
