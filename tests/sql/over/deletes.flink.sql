-- Flink cannot read changes in batch mode: these are the rows that they leave. Its LAG with a default beside other functions fails to plan.
CREATE VIEW stock AS SELECT * FROM (VALUES
  (1, CAST('tea' AS STRING), CAST('north' AS STRING), 12), (4, 'milk', 'south', 5), (2, '日本茶', 'south', 3), (3, 'tea', 'south', 7),
  (8, 'salt', 'north', 6), (10, 'crème', 'south', -4), (6, 'tea', CAST(NULL AS STRING), 12), (13, '', 'east', 8)
) AS t(id, item, branch, qty);

SELECT id, item, branch, SUM(qty) OVER w, COALESCE(LAG(item) OVER w, '-'),
  COUNT(*) OVER (PARTITION BY item ORDER BY id DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW),
  DENSE_RANK() OVER (ORDER BY item), NTILE(2) OVER (ORDER BY id)
FROM stock WINDOW w AS (PARTITION BY branch ORDER BY id);
