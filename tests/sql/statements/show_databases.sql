-- Catalogs, databases, and which is the current one.
CREATE CATALOG shelves WITH ('type' = 'generic_in_memory');
USE CATALOG shelves;
SHOW CURRENT CATALOG;
SHOW CURRENT DATABASE;
CREATE DATABASE fruit COMMENT 'apples';
CREATE DATABASE IF NOT EXISTS fruit;
CREATE DATABASE other;
SHOW DATABASES;
USE fruit;
CREATE TABLE pears (a INT) WITH ('connector' = 'blackhole');
SHOW CURRENT DATABASE;
SHOW TABLES FROM fruit;
SHOW TABLES IN shelves.other;
DROP DATABASE other;
SHOW DATABASES;
