-- The statement that would make a table again.
CREATE CATALOG makers WITH ('type' = 'generic_in_memory');
USE CATALOG makers;
CREATE TABLE t (
  id INT NOT NULL, name STRING COMMENT 'it''s a name', price DECIMAL(10, 2), tags ARRAY<STRING>, r ROW<x INT, y VARCHAR(3)>, dt STRING, PRIMARY KEY (id) NOT ENFORCED
) COMMENT 'things' PARTITIONED BY (dt) WITH ('connector' = 'filesystem', 'path' = '/it''s/here', 'format' = 'json');
SHOW CREATE TABLE t;
CREATE TABLE plain (a INT, b BIGINT NOT NULL) WITH ('connector' = 'blackhole');
SHOW CREATE TABLE plain;
