-- Rows of a changelog, which move between keys, and go.
-- record: batch
-- streams here
CREATE TABLE stock (id INT, item STRING, branch STRING, qty INT, price DECIMAL(10, 2))
WITH ('connector' = 'filesystem', 'path' = 'data/stock.json', 'format' = 'debezium-json');

SELECT id, item, branch, SUM(qty) OVER w, LAG(item, 1, '-') OVER w,
  COUNT(*) OVER (PARTITION BY item ORDER BY id DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW),
  DENSE_RANK() OVER (ORDER BY item), NTILE(2) OVER (ORDER BY id)
FROM stock WINDOW w AS (PARTITION BY branch ORDER BY id);
