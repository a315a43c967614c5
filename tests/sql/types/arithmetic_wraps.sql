-- Integers wrap at their ends; what is wider does not.
CREATE TABLE t (
  id INT, b BOOLEAN, ti TINYINT, si SMALLINT, i INT, bi BIGINT, f FLOAT, d DOUBLE, `dec` DECIMAL(30, 10), s STRING, bin BYTES,
  dt DATE, tm TIME, ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(3), arr ARRAY<INT>, m MAP<STRING, INT>,
  r ROW<x INT, y ARRAY<STRING>, z ROW<q BOOLEAN>>
) WITH ('connector' = 'filesystem', 'path' = 'data/types.json', 'format' = 'json');

SELECT id, i + 1, i - 1, i * 2, -i, bi + 1, bi * bi, CAST(i AS BIGINT) + 1, ABS(i), i / 2, MOD(i, 10), si + si, ti * ti FROM t;
