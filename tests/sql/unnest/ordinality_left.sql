CREATE TABLE nested (
  id INT, `user` ROW<name STRING, tags ARRAY<STRING>, home ROW<city STRING, zip INT>>,
  items ARRAY<ROW<sku STRING, n INT>>, attrs MAP<STRING, STRING>
) WITH ('connector' = 'filesystem', 'path' = 'data/nested.json', 'format' = 'json');

SELECT id, tag, n FROM nested LEFT JOIN UNNEST(nested.`user`.tags) WITH ORDINALITY AS t(tag, n) ON TRUE;
