CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, COUNT(DISTINCT item) AS items FROM stock GROUP BY branch HAVING COUNT(DISTINCT item) > 1 OR SUM(qty) = 8;
