-- What was first or last, and is deleted, is so no more.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT item, FIRST_VALUE(qty), LAST_VALUE(qty), FIRST_VALUE(branch), LAST_VALUE(price) FROM stock GROUP BY item;
