-- Two tables of one source, which is read once.
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/bid.json', 'format' = 'json');
CREATE TABLE dear (auction BIGINT, price BIGINT) WITH ('connector' = 'filesystem', 'path' = 'out/dear', 'format' = 'csv');
CREATE TABLE windows (starts TIMESTAMP(3), n BIGINT, total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'out/windows', 'format' = 'json');
EXECUTE STATEMENT SET BEGIN
INSERT INTO dear SELECT auction, price FROM bid WHERE price > 10000000;
INSERT INTO windows SELECT window_start, COUNT(*), SUM(price) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)) GROUP BY window_end, window_start;
END;
SELECT 'dear', CAST(auction AS STRING), price, 0 FROM dear UNION ALL SELECT 'windows', CAST(starts AS STRING), n, total FROM windows;
