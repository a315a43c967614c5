-- Two statements of a set write one table.
CREATE TABLE payments (id INT, currency STRING, amount INT, ts TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE copy (id INT, what STRING) WITH ('connector' = 'filesystem', 'path' = 'out/copy', 'format' = 'json');
EXECUTE STATEMENT SET BEGIN
INSERT INTO copy SELECT id, 'much' FROM payments WHERE amount >= 20;
INSERT INTO copy SELECT id, currency FROM payments;
END;
SELECT id, what FROM copy;
