-- What is known of files, beside the columns that are in them and those that are in the names of folders.
CREATE TABLE sales (
  id INT, amount DECIMAL(8, 2), dt DATE, region STRING,
  file_name STRING NOT NULL METADATA FROM 'file.name' VIRTUAL, file_bytes BIGINT NOT NULL METADATA FROM 'file.size' VIRTUAL,
  file_path STRING METADATA FROM 'file.path' VIRTUAL, changed_at TIMESTAMP_LTZ(3) METADATA FROM 'file.modification-time'
) PARTITIONED BY (dt, region) WITH ('connector' = 'filesystem', 'path' = 'data/sales', 'format' = 'csv');

SELECT id, amount, dt, region, file_name, file_bytes, file_path LIKE '%/data/sales/%/part-_.csv', YEAR(CAST(changed_at AS TIMESTAMP(3))) > 2023 FROM sales;
