-- A file that Flink has written: a union of null and a record.
CREATE TABLE readings (missing DOUBLE, price DECIMAL(10, 2), name STRING, seen TIMESTAMP(3), id INT, inner_row ROW<x INT, y STRING>)
  WITH ('connector' = 'filesystem', 'path' = 'data/written.avro', 'format' = 'avro');
SELECT id, name, seen, price, inner_row.y, missing FROM readings WHERE id > 1;
