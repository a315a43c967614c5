-- Lines in, lines out.
CREATE TABLE logs (line STRING) WITH ('connector' = 'filesystem', 'path' = 'data/logs.txt', 'format' = 'raw');
CREATE TABLE written (line STRING) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'raw');
INSERT INTO written SELECT LOWER(line) FROM logs WHERE CHAR_LENGTH(line) > 0;
SELECT line, CHAR_LENGTH(line) FROM written;
