-- The same grouping set twice, of rows that change.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, SUM(qty), GROUP_ID() FROM stock GROUP BY GROUPING SETS ((branch), (branch));
