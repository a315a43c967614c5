-- Two tables of the same windows, each of other aggregates.
CREATE TABLE orders (
  id INT, `user` STRING, item STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/orders.json', 'format' = 'json');
CREATE TABLE counts (starts TIMESTAMP(3), item STRING, n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'out/counts', 'format' = 'json');
CREATE TABLE totals (item STRING, total INT, dearest DECIMAL(10, 2), ends TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'out/totals', 'format' = 'json');
EXECUTE STATEMENT SET BEGIN
INSERT INTO counts SELECT window_start, item, COUNT(*) FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '40' SECOND)) WHERE id <> 18 GROUP BY window_start, window_end, item;
INSERT INTO totals SELECT item, SUM(qty), MAX(price), window_end FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '40' SECOND)) WHERE id <> 18 GROUP BY window_start, window_end, item;
END;
SELECT 'counts', starts, item, n, CAST(NULL AS DECIMAL(10, 2)) FROM counts UNION ALL SELECT 'totals', ends, item, CAST(total AS BIGINT), dearest FROM totals;
