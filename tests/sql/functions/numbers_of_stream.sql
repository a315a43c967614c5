CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, ROUND(price, 1), CEIL(price), FLOOR(-price), MOD(qty, 3), POWER(qty, 2), SIGN(qty - 2), GREATEST(qty, id, 3), LEAST(price, 1), TRUNCATE(price, 1), BIN(id), HEX(id), ABS(-price), IF(qty > 2, 'a', 'b'), COALESCE(qty, -1), ROUND(price * qty, 0) FROM orders WHERE id <> 15 AND price IS NOT NULL AND qty IS NOT NULL;
