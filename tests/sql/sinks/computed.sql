-- A table that is written and then read: computed columns and the watermark are of the reading.
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/bid.json', 'format' = 'json');
CREATE TABLE events (price BIGINT, ms BIGINT, twice AS price * 2, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'out/events', 'format' = 'json');
INSERT INTO events SELECT price, TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', `dateTime`) * CAST(1000 AS BIGINT) FROM bid WHERE price < 1000;
SELECT COUNT(*), SUM(twice), MIN(ts), MAX(ts) FROM events;
