-- Sums of the two greatest.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT SUM(qty), COUNT(*), MIN(price) FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY branch ORDER BY qty DESC, id) AS rn FROM stock
) WHERE rn <= 2;
