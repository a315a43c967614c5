-- Of a global aggregate whose rows are all gone there is no row, of groups neither.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT 'all', COUNT(*), MAX(qty) FROM stock WHERE branch = 'west'
UNION ALL SELECT branch, COUNT(*), MAX(qty) FROM stock WHERE branch = 'west' GROUP BY branch;
