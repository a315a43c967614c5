CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT item, LISTAGG(branch), LISTAGG(DISTINCT branch, '|'), LISTAGG(CAST(qty AS STRING), '-') FROM stock GROUP BY item;
