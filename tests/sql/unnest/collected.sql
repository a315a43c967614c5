-- Values of a multiset that shrinks and grows.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, item FROM (SELECT branch, COLLECT(item) AS items FROM stock WHERE id < 6 GROUP BY branch) CROSS JOIN UNNEST(items) AS i(item);
