-- Hints that change nothing of the result.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
CREATE TABLE accounts (id INT, owner STRING, branch STRING, amount INT)
WITH ('connector' = 'filesystem', 'path' = 'data/accounts.json', 'format' = 'debezium-json');

SELECT /*+ STATE_TTL('s' = '1d', 'a' = '12h') */ s.id, a.owner FROM stock s JOIN accounts a ON s.id = a.id;
