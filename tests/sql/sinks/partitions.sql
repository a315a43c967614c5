-- Partitions of two columns, one of which has characters that no folder can have. The date is a text, since Flink cannot read the
-- dates that it has written.
CREATE TABLE sales (id INT, amount DECIMAL(8, 2), dt DATE, region STRING) PARTITIONED BY (dt, region)
WITH ('connector' = 'filesystem', 'path' = 'data/sales', 'format' = 'csv');
CREATE TABLE copy (region STRING, id INT, dt STRING, amount DECIMAL(8, 2)) PARTITIONED BY (region, dt)
WITH ('connector' = 'filesystem', 'path' = 'out/copy', 'format' = 'json');
INSERT INTO copy SELECT region, id, CAST(dt AS STRING), amount FROM sales;
SELECT id, amount, dt, region FROM copy WHERE region <> 'us' OR dt = '2024-01-03';
