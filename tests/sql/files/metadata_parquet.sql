-- Of a file in pieces, which has a column of the same name.
CREATE TABLE readings (id INT, name STRING NOT NULL METADATA FROM 'file.name' VIRTUAL, file_bytes BIGINT NOT NULL METADATA FROM 'file.size' VIRTUAL)
  WITH ('connector' = 'filesystem', 'path' = 'data/written.parquet', 'format' = 'parquet');
SELECT id, name, file_bytes FROM readings WHERE id > 1;
