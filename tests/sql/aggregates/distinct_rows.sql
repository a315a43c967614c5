-- changes: Flink plans updates of every GROUP BY; of rows that are only inserted nothing is taken back when nothing is aggregated.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT DISTINCT item, qty > 2 FROM orders;
