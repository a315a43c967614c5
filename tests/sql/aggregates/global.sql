-- One row for all.
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');
SELECT COUNT(*), SUM(amount), MIN(owner), MAX(owner), COUNT(DISTINCT owner) FROM accounts;
