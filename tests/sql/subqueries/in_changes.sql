CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, item FROM orders WHERE item IN (SELECT item FROM stock WHERE qty < 5) OR item = 'fig';
