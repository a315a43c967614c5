-- The greatest value comes, changes, and goes.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT id, item, qty FROM stock WHERE qty >= ALL (SELECT qty FROM stock WHERE qty IS NOT NULL);
