-- A row is alone only when no match can come any more, and the bound is inclusive (KAFKA-10847).
-- R20
CREATE TABLE l (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'data/bound_left.json', 'format' = 'json');
CREATE TABLE r (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'data/bound_right.json', 'format' = 'json');
SELECT l.k, l.ts, r.ts FROM l LEFT JOIN r ON l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL '10' SECOND;
