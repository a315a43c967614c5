-- A table that is made of a query, in partitions.
CREATE TABLE payments (id INT, currency STRING, amount INT, ts TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE filed PARTITIONED BY (currency) WITH ('connector' = 'filesystem', 'path' = 'out/filed', 'format' = 'csv') AS SELECT id, amount, currency FROM payments WHERE currency IS NOT NULL;
SELECT currency, COUNT(*), SUM(amount) FROM filed GROUP BY currency;
