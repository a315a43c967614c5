-- Every plain aggregate over rows that come, change, move to other groups and go; a group whose last row goes is gone.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, COUNT(*), COUNT(qty), SUM(qty), AVG(qty), MIN(qty), MAX(qty), SUM(price), AVG(price), MIN(price), MAX(price)
FROM stock GROUP BY branch;
