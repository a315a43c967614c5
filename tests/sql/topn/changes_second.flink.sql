-- Flink takes rows back that it has not told of if the first are not wanted. Those that have one before them are the second.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT a.branch, a.id, a.price FROM stock a JOIN stock b ON COALESCE(a.branch, '') = COALESCE(b.branch, '')
  AND (COALESCE(b.price, -1) < COALESCE(a.price, -1) OR COALESCE(b.price, -1) = COALESCE(a.price, -1) AND b.id > a.id)
GROUP BY a.branch, a.id, a.price HAVING COUNT(*) = 1;
