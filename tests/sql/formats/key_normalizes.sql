-- With a primary key rows are what was said last of them.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
SELECT id, item, branch, qty, price FROM stock;
