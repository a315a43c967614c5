-- For how long tables of a join and of an aggregate are kept, which is longer than the job takes.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');
CREATE VIEW counts AS SELECT /*+ STATE_TTL('stock' = '1 d') */ branch, COUNT(*) AS n, SUM(qty) AS qty FROM stock GROUP BY branch;
SELECT /*+ STATE_TTL('c' = '2 d', 'a' = '36 h') */ a.id, a.owner, c.n, c.qty
FROM accounts a LEFT JOIN counts c ON a.branch = c.branch;
