-- The fields of rows of which a group has several of the same.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, item, many FROM (SELECT branch, COLLECT(ROW(item, qty > 3)) AS items FROM stock GROUP BY branch) AS g
CROSS JOIN UNNEST(g.items) AS i(item, many);
