-- Of a file of changes.
CREATE TABLE accounts (id INT, owner STRING, file_name STRING NOT NULL METADATA FROM 'file.name' VIRTUAL, branch STRING)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');
SELECT id, file_name, branch FROM accounts;
