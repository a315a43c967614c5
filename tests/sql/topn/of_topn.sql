-- The best of the best.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT id, branch, qty FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY qty DESC, id) AS r2 FROM (
    SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY branch ORDER BY qty DESC, id) AS r1 FROM stock) WHERE r1 <= 2
  )
) WHERE r2 <= 3;
