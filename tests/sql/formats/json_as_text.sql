-- What is nested, as text; numbers as text; a text as number.
CREATE TABLE t (id STRING, `user` STRING, items STRING, attrs MAP<STRING, STRING>) WITH ('connector' = 'filesystem', 'path' = 'data/nested.json', 'format' = 'json');
SELECT id, `user`, items, attrs['k1'] FROM t;
