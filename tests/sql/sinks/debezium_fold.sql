-- What the changes of an aggregate add up to, in whatever order files are read.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
CREATE TABLE totals (branch STRING, n BIGINT, qty INT) WITH ('connector' = 'filesystem', 'path' = 'out/totals', 'format' = 'debezium-json');
INSERT INTO totals SELECT branch, COUNT(*), SUM(qty) FROM stock GROUP BY branch;
CREATE TABLE changes (`before` ROW<branch STRING, n BIGINT, qty INT>, `after` ROW<branch STRING, n BIGINT, qty INT>, op STRING)
WITH ('connector' = 'filesystem', 'path' = 'out/totals', 'format' = 'json');
SELECT branch, n, qty, SUM(sign) FROM (
  SELECT c.`after`.branch AS branch, c.`after`.n AS n, c.`after`.qty AS qty, 1 AS sign FROM changes AS c WHERE c.op = 'c'
  UNION ALL
  SELECT c.`before`.branch AS branch, c.`before`.n AS n, c.`before`.qty AS qty, -1 AS sign FROM changes AS c WHERE c.op = 'd'
) GROUP BY branch, n, qty HAVING SUM(sign) <> 0;
