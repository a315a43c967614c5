-- How CSV is written, to the letter.
CREATE TABLE written (id INT, a STRING, d DOUBLE, n DECIMAL(20, 2), ok BOOLEAN, ts TIMESTAMP(3), dt DATE) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'csv');
INSERT INTO written VALUES
  (1, 'a,b', 1.5E10, 100.00, TRUE, TIMESTAMP '2024-01-02 03:04:05.678', DATE '2024-02-29'), (2, 'he said "hi"', -0.25E0, -0.01, FALSE, TIMESTAMP '2024-01-02 03:04:00', DATE '1969-12-31'),
  (3, '', 1E0, 12345678901234567.89, CAST(NULL AS BOOLEAN), CAST(NULL AS TIMESTAMP(3)), CAST(NULL AS DATE)), (4, CAST(NULL AS STRING), 1E-5, 0, TRUE, TIMESTAMP '1969-12-31 23:59:59.999', DATE '9999-12-31'), (5, 'plain', 3E0, 7.5, TRUE, TIMESTAMP '2024-01-02 03:04:05', DATE '2024-01-01');
CREATE TABLE lines (line STRING) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'raw');
SELECT line FROM lines;
