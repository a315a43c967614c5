-- Lines as they are.
CREATE TABLE lines (line STRING) WITH ('connector' = 'filesystem', 'path' = 'data/logs.txt', 'format' = 'raw');
SELECT SPLIT_INDEX(line, ' ', 1), COUNT(*), MAX(CHAR_LENGTH(line)) FROM lines GROUP BY SPLIT_INDEX(line, ' ', 1);
