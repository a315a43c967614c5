-- Numbers that do not fit into what they are cast to.
CREATE TABLE t (
  id INT, b BOOLEAN, ti TINYINT, si SMALLINT, i INT, bi BIGINT, f FLOAT, d DOUBLE, `dec` DECIMAL(30, 10), s STRING, bin BYTES,
  dt DATE, tm TIME, ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(3), arr ARRAY<INT>, m MAP<STRING, INT>,
  r ROW<x INT, y ARRAY<STRING>, z ROW<q BOOLEAN>>
) WITH ('connector' = 'filesystem', 'path' = 'data/types.json', 'format' = 'json');

SELECT id, CAST(i AS SMALLINT), CAST(bi AS INT), CAST(si AS TINYINT), CAST(d AS INT), CAST(d AS BIGINT), CAST(d AS FLOAT), CAST(f AS SMALLINT),
  CAST(bi AS DOUBLE), CAST(bi AS FLOAT) FROM t;
