-- A row that was pushed out comes in again when another is deleted.
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');
SELECT branch, owner, amount FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY branch ORDER BY amount DESC, id) AS rn FROM accounts
) WHERE rn <= 1;
