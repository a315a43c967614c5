-- Partitions by the minute that are complete when event time has passed them; the files that say so are no rows.
-- not in batch mode: Flink takes no watermark for it there.
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/bid.json', 'format' = 'json');
CREATE TABLE filed (auction BIGINT, price BIGINT, dt STRING, hm STRING) PARTITIONED BY (dt, hm) WITH (
  'connector' = 'filesystem', 'path' = 'out/filed', 'format' = 'csv', 'sink.partition-commit.trigger' = 'partition-time',
  'sink.partition-commit.delay' = '1 min', 'sink.partition-commit.policy.kind' = 'success-file', 'partition.time-extractor.timestamp-pattern' = '$dt $hm:00'
);
INSERT INTO filed SELECT auction, price, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), DATE_FORMAT(`dateTime`, 'HH:mm') FROM bid;
SELECT dt, hm, COUNT(*), SUM(price) FROM filed GROUP BY dt, hm;
