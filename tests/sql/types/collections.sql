CREATE TABLE t (
  id INT, b BOOLEAN, ti TINYINT, si SMALLINT, i INT, bi BIGINT, f FLOAT, d DOUBLE, `dec` DECIMAL(30, 10), s STRING, bin BYTES,
  dt DATE, tm TIME, ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(3), arr ARRAY<INT>, m MAP<STRING, INT>,
  r ROW<x INT, y ARRAY<STRING>, z ROW<q BOOLEAN>>
) WITH ('connector' = 'filesystem', 'path' = 'data/types.json', 'format' = 'json');

SELECT id, CAST(arr AS STRING), m, r, arr[1], arr[2], m['a'], m['none'], CARDINALITY(arr), CARDINALITY(m), r.x, r.y[1], r.z.q, r.z IS NULL FROM t;
