-- A computed column is the event time, and comes after late rows were cut.
CREATE TABLE t (
  id INT, `user` STRING, qty INT, ts STRING,
  `at` AS TO_TIMESTAMP(ts), twice AS qty * 2, WATERMARK FOR `at` AS `at`
) WITH ('connector' = 'filesystem', 'path' = 'data/payments.json', 'format' = 'json');
SELECT id, `at`, twice IS NULL FROM t WHERE `at` > TIMESTAMP '2024-03-01 10:00:20';
