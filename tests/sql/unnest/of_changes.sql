CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT id, x FROM stock CROSS JOIN UNNEST(ARRAY[item, branch]) AS u(x);
