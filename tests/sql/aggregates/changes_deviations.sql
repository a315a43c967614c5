-- Of few small integers, so that taking back leaves no rounding.
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT branch, STDDEV_POP(qty), STDDEV_SAMP(qty), VAR_POP(qty), VAR_SAMP(qty), STDDEV(qty), VARIANCE(qty)
FROM stock WHERE qty < 100 GROUP BY branch;
