CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');
SELECT a.id, a.amount FROM accounts a
WHERE a.amount >= (SELECT AVG(b.amount) FROM accounts b WHERE b.branch = a.branch);
