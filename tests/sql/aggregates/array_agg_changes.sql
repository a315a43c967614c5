CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, CAST(ARRAY_AGG(item) AS STRING), CAST(ARRAY_AGG(qty) AS STRING) FROM stock GROUP BY branch;
