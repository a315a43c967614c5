-- A file that Flink has written, with timestamps as INT96.
CREATE TABLE readings (id INT, name STRING, seen TIMESTAMP(3), near TIMESTAMP(9), price DECIMAL(10, 2), inner_row ROW<x INT, y STRING>, missing DOUBLE)
  WITH ('connector' = 'filesystem', 'path' = 'data/written.parquet', 'format' = 'parquet');
SELECT id, name, seen, near, price, inner_row.y, missing FROM readings WHERE id > 1;
