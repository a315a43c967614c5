-- When a job has ended all its rows are there, whenever the next checkpoint would have been.
-- R27
SET 'execution.checkpointing.interval' = '10 min';
CREATE TABLE orders (id INT, item STRING) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
CREATE TABLE copy (id INT, item STRING) WITH ('connector' = 'filesystem', 'path' = 'out/copy', 'format' = 'csv');
INSERT INTO copy SELECT id, item FROM orders WHERE id <= 10;
SELECT id, item FROM copy;
