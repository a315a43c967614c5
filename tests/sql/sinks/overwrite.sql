-- The whole table is written anew.
-- record: batch: there only.
CREATE TABLE payments (id INT, currency STRING, amount INT, ts TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE copy (id INT, amount INT) WITH ('connector' = 'filesystem', 'path' = 'out/copy', 'format' = 'csv');
INSERT INTO copy SELECT id, amount FROM payments;
INSERT OVERWRITE copy SELECT id, amount + 1 FROM payments WHERE amount > 10;
SELECT id, amount FROM copy;
