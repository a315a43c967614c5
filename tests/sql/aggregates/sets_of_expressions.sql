-- Sets of what is computed, and which of it is left out.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');

SELECT UPPER(item), MOD(id, 2), COUNT(*), SUM(MOD(id, 2)), GROUPING(UPPER(item)), GROUPING_ID(UPPER(item), MOD(id, 2))
FROM orders WHERE id < 9 GROUP BY GROUPING SETS ((UPPER(item)), (MOD(id, 2)), (UPPER(item), MOD(id, 2)), ());
