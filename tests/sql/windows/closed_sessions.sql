-- Each key has one session. What is left of them is looked at with a million keys in tests/queries.
-- R24
-- not in batch mode: Flink has no sessions there.
CREATE TABLE person (
  id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, `dateTime` TIMESTAMP(3), extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/person.json', 'format' = 'json');
SELECT id, window_start, window_end, COUNT(*)
FROM TABLE(SESSION(TABLE person PARTITION BY id, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND))
GROUP BY id, window_start, window_end;
