-- Rows and maps as results, an array as text.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT ROW(id, `user`), CAST(ARRAY[qty, id] AS STRING), MAP['item', item] FROM orders
WHERE id BETWEEN 3 AND 5;
