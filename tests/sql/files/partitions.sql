-- Partition columns are in the names of folders; conditions on them leave folders out.
CREATE TABLE sales (id INT, amount DECIMAL(8, 2), dt DATE, region STRING) PARTITIONED BY (dt, region)
  WITH ('connector' = 'filesystem', 'path' = 'data/sales', 'format' = 'csv');
SELECT id, amount, dt, region FROM sales WHERE dt >= DATE '2024-01-02' AND region <> 'us' AND id <> 4;
