SET 'table.optimizer.agg-phase-strategy' = 'ONE_PHASE';
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT COUNT(*), COUNT(DISTINCT branch), MIN(item), MAX(price), SUM(price * qty), AVG(qty) FROM stock;
