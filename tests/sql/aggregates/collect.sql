-- Values with how often they are there: the last row of a group goes with its key.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, COLLECT(item) FROM stock WHERE item <> 'tea' AND item <> 'milk' AND item <> 'crème' GROUP BY branch;
