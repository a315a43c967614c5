CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT item, JSON_OBJECTAGG(KEY CAST(id AS STRING) VALUE qty), JSON_OBJECTAGG(KEY CAST(id AS STRING) VALUE qty ABSENT ON NULL),
  JSON_ARRAYAGG(`user`), JSON_ARRAYAGG(`user` NULL ON NULL) FROM orders WHERE id < 10 GROUP BY item;
