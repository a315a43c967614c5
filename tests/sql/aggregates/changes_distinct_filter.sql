CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, COUNT(DISTINCT item), COUNT(DISTINCT item) FILTER (WHERE qty > 5), SUM(DISTINCT qty) FILTER (WHERE price > 1),
  MAX(qty) FILTER (WHERE item = 'tea'), COUNT(*) FILTER (WHERE price IS NULL)
FROM stock GROUP BY branch;
