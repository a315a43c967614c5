-- Changes as Debezium has them: an update is a row that goes and one that comes.
CREATE TABLE stock (id INT, name STRING, score INT) WITH ('connector' = 'filesystem', 'path' = 'data/maxwell.json', 'format' = 'maxwell-json');
CREATE TABLE written (id INT, name STRING, score INT) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'debezium-json');
INSERT INTO written SELECT * FROM stock;
CREATE TABLE lines (line STRING) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'raw');
SELECT line FROM lines;
