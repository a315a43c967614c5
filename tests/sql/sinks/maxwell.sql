-- Changes as Maxwell has them.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
CREATE TABLE written (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2)) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'maxwell-json');
INSERT INTO written SELECT * FROM stock;
CREATE TABLE lines (line STRING) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'raw');
SELECT line FROM lines;
