-- Three aggregates above each other.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT most, COUNT(*) FROM (
  SELECT n, MAX(total) AS most FROM (
    SELECT branch, COUNT(*) AS n, SUM(qty) AS total FROM stock GROUP BY branch
  ) GROUP BY n
) GROUP BY most;
