-- Pairs with nulls come into the list, and go.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');

SELECT id, owner FROM accounts WHERE (id, branch) NOT IN (SELECT id - 9, branch FROM stock WHERE id > 9);
