CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, UPPER(`user`), INITCAP(item), CONCAT_WS('-', `user`, item, CAST(qty AS STRING)), LPAD(CAST(id AS STRING), 3, '0'), REPLACE(item, 'p', 'P'), REGEXP_REPLACE(item, '[aeiou]', '*'),
  SPLIT_INDEX(item, 'p', 1), TRIM(BOTH 'a' FROM item), LOCATE('a', `user`), ASCII(item), MD5(`user`), `user` SIMILAR TO '(a|b)%', REGEXP(item, '^.{3}$'), ELT(id, 'one', 'two') FROM orders WHERE id < 9;
