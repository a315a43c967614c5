-- Nothing is read of the files but how many rows they have, and of which.
CREATE TABLE sales (
  id INT, amount DECIMAL(8, 2), dt DATE, region STRING,
  file_name STRING NOT NULL METADATA FROM 'file.name' VIRTUAL, file_bytes BIGINT NOT NULL METADATA FROM 'file.size' VIRTUAL,
  file_path STRING METADATA FROM 'file.path' VIRTUAL, changed_at TIMESTAMP_LTZ(3) METADATA FROM 'file.modification-time'
) PARTITIONED BY (dt, region) WITH ('connector' = 'filesystem', 'path' = 'data/sales', 'format' = 'csv');

SELECT file_name, COUNT(*), MIN(file_bytes) FROM sales WHERE file_name <> 'part-1.csv' AND dt > DATE '2024-01-01' GROUP BY file_name;
