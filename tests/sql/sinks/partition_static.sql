-- Partitions that the statement names, all or the first.
CREATE TABLE payments (id INT, currency STRING, amount INT, ts TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE filed (id INT, amount INT, y INT, currency STRING) PARTITIONED BY (y, currency)
WITH ('connector' = 'filesystem', 'path' = 'out/filed', 'format' = 'csv');
INSERT INTO filed PARTITION (y = 2023, currency = 'EUR') SELECT id, amount FROM payments WHERE currency = 'EUR';
INSERT INTO filed PARTITION (y = 2024) SELECT id, amount, currency FROM payments WHERE currency IS NOT NULL;
SELECT id, amount, y, currency FROM filed;
