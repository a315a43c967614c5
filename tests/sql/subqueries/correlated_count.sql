-- How many there are: none is 0.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');

SELECT a.id, a.branch, (SELECT COUNT(*) FROM stock s WHERE s.branch = a.branch) FROM accounts a;
