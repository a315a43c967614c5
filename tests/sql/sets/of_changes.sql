CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');
SELECT branch FROM accounts WHERE amount > 0 EXCEPT SELECT branch FROM accounts WHERE amount < 0;
