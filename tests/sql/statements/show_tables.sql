-- Tables, views among them, all and by their names.
CREATE TABLE apples (a INT) WITH ('connector' = 'blackhole');
CREATE TABLE pears (a INT) WITH ('connector' = 'blackhole');
CREATE VIEW apple_pie AS SELECT 1 AS a;
CREATE TEMPORARY VIEW lately AS SELECT 2 AS a;
SHOW TABLES;
SHOW VIEWS;
SHOW TABLES LIKE 'apple%';
SHOW TABLES NOT LIKE '%e_rs';
SHOW VIEWS LIKE 'l%';
DROP TABLE pears;
DROP VIEW apple_pie;
SHOW TABLES;
