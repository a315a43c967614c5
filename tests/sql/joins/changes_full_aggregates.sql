-- Both sides have one row a key, which comes, changes and goes.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');

SELECT COALESCE(s.branch, a.branch), s.n, a.n FROM (SELECT branch, COUNT(*) AS n FROM stock GROUP BY branch) s
FULL JOIN (SELECT branch, COUNT(*) AS n FROM accounts GROUP BY branch) a ON s.branch = a.branch;
