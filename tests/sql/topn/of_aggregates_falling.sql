-- The order is by a number that gets less and more.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT item, total, rn FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY total DESC, item) AS rn FROM (
    SELECT item, SUM(qty) AS total FROM stock GROUP BY item
  )
) WHERE rn <= 3;
