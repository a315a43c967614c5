CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
SELECT id, UPPER(`user`), CHAR_LENGTH(item), SUBSTRING(item FROM 2), `user` || '·' || item, POSITION('茶' IN item)
FROM orders WHERE `user` = 'zoë' OR item LIKE '%本%';
