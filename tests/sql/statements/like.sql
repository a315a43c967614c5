-- A table like another, with other options and one more column.
CREATE TABLE base (id INT, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'data/nothing.json', 'format' = 'json');
CREATE TABLE derived (currency STRING, twice AS amount * 2) WITH ('path' = 'data/payments.json') LIKE base (OVERWRITING OPTIONS);
SELECT window_start, SUM(twice), MIN(currency) FROM TABLE(TUMBLE(TABLE derived, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
