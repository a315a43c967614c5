CREATE TABLE nested (
  id INT, `user` ROW<name STRING, tags ARRAY<STRING>, home ROW<city STRING, zip INT>>,
  items ARRAY<ROW<sku STRING, n INT>>, attrs MAP<STRING, STRING>
) WITH ('connector' = 'filesystem', 'path' = 'data/nested.json', 'format' = 'json');

SELECT id, nested.`user`.name, nested.`user`.home.city, nested.`user`.home.zip, CARDINALITY(nested.`user`.tags), items[1].sku, items[2], attrs['k1'], attrs[''], nested.`user` IS NULL FROM nested;
