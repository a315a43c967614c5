-- A query that depends on the row beside it.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');

SELECT a.branch, x.n, x.total FROM (SELECT DISTINCT branch FROM accounts) a,
LATERAL (SELECT COUNT(*) AS n, SUM(qty) AS total FROM stock s WHERE s.branch = a.branch) AS x;
