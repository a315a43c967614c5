CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, item, COUNT(*), SUM(qty), GROUPING_ID(branch, item)
FROM stock GROUP BY GROUPING SETS ((branch), (item), (branch, item));
