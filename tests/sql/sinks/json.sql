-- Values of every type as JSON, and back.
CREATE TABLE types (
  id INT, b BOOLEAN, ti TINYINT, si SMALLINT, i INT, bi BIGINT, f FLOAT, d DOUBLE, `dec` DECIMAL(30, 10), s STRING, bin BYTES,
  dt DATE, tm TIME, ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(3), arr ARRAY<INT>, m MAP<STRING, INT>,
  r ROW<x INT, y ARRAY<STRING>, z ROW<q BOOLEAN>>
) WITH ('connector' = 'filesystem', 'path' = 'data/types.json', 'format' = 'json');
CREATE TABLE copy WITH ('path' = 'out/copy') LIKE types;
INSERT INTO copy SELECT * FROM types;
SELECT id, b, ti, si, i, bi, IF(id <> 2, f, CAST(NULL AS FLOAT)), d, `dec`, HEX(s), bin = x'00ff80', dt, tm, ts, ltz,
  CAST(arr AS STRING), m, CAST(r AS STRING) FROM copy;
