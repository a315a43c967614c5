-- Nothing is read of the files but how many rows they have.
CREATE TABLE sales (id INT, amount DECIMAL(8, 2), dt DATE, region STRING) PARTITIONED BY (dt, region)
  WITH ('connector' = 'filesystem', 'path' = 'data/sales', 'format' = 'csv');
SELECT region, COUNT(*), MAX(dt) FROM sales GROUP BY region;
