-- Files that are to be open for longer than checkpoints are kept.
-- R25
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/bid.json', 'format' = 'json');
CREATE TABLE copy (auction BIGINT, price BIGINT) WITH (
  'connector' = 'filesystem', 'path' = 'out/copy', 'format' = 'json', 'sink.rolling-policy.rollover-interval' = '1 h', 'sink.rolling-policy.inactivity-interval' = '1 h'
);
INSERT INTO copy SELECT auction, price FROM bid WHERE MOD(auction, 10) = 3;
SELECT auction, COUNT(*), SUM(price) FROM copy GROUP BY auction;
