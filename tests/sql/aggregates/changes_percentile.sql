-- Values are taken back, the last of a group too.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, PERCENTILE(qty, 0.5), CAST(PERCENTILE(price, ARRAY[0.0, 1.0]) AS STRING), PERCENTILE(id, 0.5, qty) FROM stock GROUP BY branch;
