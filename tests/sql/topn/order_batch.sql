-- Sorted by several columns with nulls where they are wanted, of which a limit shows the first.
-- record: batch
-- streams here
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT id, `user`, price FROM orders ORDER BY `user` DESC NULLS LAST, price ASC NULLS FIRST, id DESC LIMIT 7 OFFSET 1;
