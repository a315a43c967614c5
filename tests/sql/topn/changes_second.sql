-- Only the second of each branch.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, id, price FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY branch ORDER BY price, id DESC) AS rn FROM stock
) WHERE rn = 2;
