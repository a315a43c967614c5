-- IN over groups that come and go.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT id, `user` FROM orders WHERE qty IN (SELECT COUNT(*) FROM stock GROUP BY branch);
