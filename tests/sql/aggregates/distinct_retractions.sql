-- A value counts until its last row is gone.
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');
SELECT COUNT(DISTINCT branch), SUM(DISTINCT amount), COUNT(DISTINCT amount) FROM accounts;
