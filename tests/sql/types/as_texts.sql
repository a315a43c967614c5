-- Each type as text.
CREATE TABLE t (
  id INT, b BOOLEAN, ti TINYINT, si SMALLINT, i INT, bi BIGINT, f FLOAT, d DOUBLE, `dec` DECIMAL(30, 10), s STRING, bin BYTES,
  dt DATE, tm TIME, ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(3), arr ARRAY<INT>, m MAP<STRING, INT>,
  r ROW<x INT, y ARRAY<STRING>, z ROW<q BOOLEAN>>
) WITH ('connector' = 'filesystem', 'path' = 'data/types.json', 'format' = 'json');

SELECT id, CAST(b AS STRING), CAST(ti AS STRING), CAST(bi AS STRING), CAST(f AS STRING), CAST(d AS STRING), CAST(`dec` AS STRING),
  CAST(dt AS STRING), CAST(tm AS STRING), CAST(ts AS STRING), CAST(ltz AS STRING), CAST(arr AS STRING), CAST(m AS STRING), CAST(r AS STRING), HEX(s) FROM t WHERE id <> 2;
