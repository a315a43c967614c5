-- Values of many types as Avro, and back.
CREATE TABLE types (
  id INT, b BOOLEAN, ti TINYINT, si SMALLINT, i INT, bi BIGINT, f FLOAT, d DOUBLE, `dec` DECIMAL(30, 10), s STRING, bin BYTES,
  dt DATE, tm TIME, ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(3), arr ARRAY<INT>, m MAP<STRING, INT>,
  r ROW<x INT, y ARRAY<STRING>, z ROW<q BOOLEAN>>
) WITH ('connector' = 'filesystem', 'path' = 'data/types.json', 'format' = 'json');
CREATE TABLE copy (
  id INT, b BOOLEAN, i INT, bi BIGINT, d DOUBLE, `dec` DECIMAL(30, 10), s STRING, bin BYTES, dt DATE, tm TIME, ts TIMESTAMP(3), arr ARRAY<INT>, m MAP<STRING, INT>,
  r ROW<x INT, y ARRAY<STRING>, z ROW<q BOOLEAN>>
) WITH ('connector' = 'filesystem', 'path' = 'out/copy', 'format' = 'avro');
INSERT INTO copy SELECT id, b, i, bi, d, `dec`, s, bin, dt, tm, CAST(ts AS TIMESTAMP(3)), arr, m, r FROM types;
SELECT id, b, i, bi, d, `dec`, HEX(s), bin = x'00ff80', dt, tm, ts, CAST(arr AS STRING), m, CAST(r AS STRING) FROM copy;
