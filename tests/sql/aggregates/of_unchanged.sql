-- A result that stays the same keeps what was made of it from going; here nothing goes (FLINK-33936).
-- R14
SET 'table.exec.state.ttl' = '10 h';
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '1 s';
SET 'table.exec.mini-batch.size' = '100';
CREATE TABLE t (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'data/unchanged.json', 'format' = 'json');
SELECT k, COUNT(*) FROM (SELECT k, MAX(v) AS m FROM t GROUP BY k) GROUP BY k;
