CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT a.id, b.id, a.branch FROM stock a JOIN stock b ON a.branch = b.branch AND a.id < b.id;
