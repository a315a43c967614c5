CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT id, item, qty FROM stock ORDER BY qty DESC, id FETCH FIRST 4 ROWS ONLY;
