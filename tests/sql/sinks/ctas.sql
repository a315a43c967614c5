-- Tables that are made of queries.
CREATE TABLE payments (id INT, currency STRING, amount INT, ts TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/bid.json', 'format' = 'json');
CREATE TABLE big_ones WITH ('connector' = 'filesystem', 'path' = 'out/big_ones', 'format' = 'csv') AS SELECT id, amount * 2 AS twice, currency FROM payments WHERE amount > 10;
CREATE TABLE totals WITH ('connector' = 'filesystem', 'path' = 'out/totals', 'format' = 'json') AS
SELECT window_start AS starts, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
SELECT CAST(id AS STRING), twice, currency FROM big_ones UNION ALL SELECT CAST(starts AS STRING), CAST(n AS INT), 'window' FROM totals;
