CREATE TABLE early (id INT, ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'data/old.json', 'format' = 'json');
SELECT id, EXTRACT(MINUTE FROM ts), DATE_FORMAT(ts, 'yyyy/MM/dd HH:mm:ss.SSS'), FLOOR(ts TO MINUTE), CEIL(ts TO HOUR), QUARTER(ts), DAYOFYEAR(ts), YEAR(ts), TIMESTAMPDIFF(SECOND, ts, TIMESTAMP '1970-01-01 00:00:00'), FLOOR(ts TO YEAR) FROM early WHERE id > 3;
