-- What the changes of an outer join add up to, in whatever order files are read.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');
CREATE TABLE pairs (id INT, owner STRING) WITH ('connector' = 'filesystem', 'path' = 'out/pairs', 'format' = 'maxwell-json');
INSERT INTO pairs SELECT s.id, a.owner FROM stock s LEFT JOIN accounts a ON s.branch = a.branch;
CREATE TABLE changes (`data` ROW<id INT, owner STRING>, `type` STRING) WITH ('connector' = 'filesystem', 'path' = 'out/pairs', 'format' = 'json');
SELECT c.`data`.id, c.`data`.owner, SUM(IF(c.`type` = 'insert', 1, -1)) FROM changes AS c
GROUP BY c.`data`.id, c.`data`.owner HAVING SUM(IF(c.`type` = 'insert', 1, -1)) <> 0;
