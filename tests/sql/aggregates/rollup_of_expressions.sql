CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT COALESCE(branch, '?'), qty > 5, COUNT(*), SUM(qty) FROM stock GROUP BY ROLLUP (COALESCE(branch, '?'), qty > 5) HAVING COUNT(*) > 1;
