-- Aggregates over rows that are updated and deleted: MIN and MAX go back.
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');
SELECT branch, COUNT(*), COUNT(amount), SUM(amount), AVG(amount), MIN(amount), MAX(amount)
FROM accounts GROUP BY branch;
