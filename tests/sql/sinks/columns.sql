-- Some of the columns, in another order: the others are null. Numbers get wider.
CREATE TABLE payments (id INT, currency STRING, amount INT, ts TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE copy (id BIGINT, currency STRING, amount DECIMAL(10, 2), note STRING) WITH ('connector' = 'filesystem', 'path' = 'out/copy', 'format' = 'json');
INSERT INTO copy (amount, id) SELECT amount, id FROM payments WHERE id < 4;
INSERT INTO copy (id, note) VALUES (100, 'noted'), (101, CAST(NULL AS STRING));
INSERT INTO copy SELECT id, currency, amount, 'whole' FROM payments WHERE id > 7;
SELECT id, currency, amount, note FROM copy;
