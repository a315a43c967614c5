-- Arrays, maps and rows as Parquet, and back.
CREATE TABLE nested (
  id INT, `user` ROW<name STRING, tags ARRAY<STRING>, home ROW<city STRING, zip INT>>, attrs MAP<STRING, STRING>
) WITH ('connector' = 'filesystem', 'path' = 'data/nested.json', 'format' = 'json');
CREATE TABLE written (id INT, tags ARRAY<STRING>, home ROW<city STRING, zip INT>, attrs MAP<STRING, STRING>)
WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'parquet');
INSERT INTO written SELECT id, nested.`user`.tags, nested.`user`.home, attrs FROM nested WHERE id IN (1, 3);
SELECT id, CAST(tags AS STRING), CAST(home AS STRING), attrs['k1'], attrs['none'] FROM written;
