-- Of a file in blocks.
CREATE TABLE readings (file_bytes BIGINT NOT NULL METADATA FROM 'file.size' VIRTUAL, id INT, file_path STRING NOT NULL METADATA FROM 'file.path' VIRTUAL)
  WITH ('connector' = 'filesystem', 'path' = 'data/written.avro', 'format' = 'avro');
SELECT id, file_bytes, file_path LIKE '%/data/written.avro' FROM readings;
