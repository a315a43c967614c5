-- How often each value is there, of groups that come and go.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, q, COUNT(*) FROM (SELECT branch, COLLECT(qty) AS quantities FROM stock GROUP BY branch) AS g
LEFT JOIN UNNEST(g.quantities) AS i(q) ON TRUE GROUP BY branch, q;
