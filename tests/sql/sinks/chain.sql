-- What one statement has written the next one reads.
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/bid.json', 'format' = 'json');
CREATE TABLE cheap (bidder BIGINT, price BIGINT) WITH ('connector' = 'filesystem', 'path' = 'out/cheap', 'format' = 'csv', 'sink.parallelism' = '2');
CREATE TABLE odd (bidder BIGINT, price BIGINT) WITH ('connector' = 'filesystem', 'path' = 'out/odd', 'format' = 'json');
INSERT INTO cheap SELECT bidder, price FROM bid WHERE price < 500;
INSERT INTO odd SELECT bidder, price FROM cheap WHERE MOD(price, 2) = 1;
INSERT INTO odd SELECT -bidder, price FROM cheap WHERE MOD(price, 100) = 0;
SELECT bidder, price FROM odd;
