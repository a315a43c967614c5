-- Columns that are called like what they are.
CREATE TABLE orders (`file.path` STRING NOT NULL METADATA, id INT, `file.name` STRING METADATA VIRTUAL)
WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT id, `file.name`, `file.path` LIKE '%/data/orders.json' FROM orders WHERE id < 4;
