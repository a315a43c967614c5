-- Types of every kind, keys and comments, in their words.
CREATE TABLE t (
  id INT NOT NULL, part BIGINT, name VARCHAR(10) COMMENT 'what it''s called', code CHAR(3), raw_ BYTES, bits VARBINARY(4), flag BOOLEAN NOT NULL, tiny TINYINT, small SMALLINT,
  f FLOAT, d DOUBLE, price DECIMAL(10, 2), whole DECIMAL(5, 0), dt DATE, tm TIME, ts TIMESTAMP(3), fine TIMESTAMP(9), instant TIMESTAMP_LTZ(3), tags ARRAY<STRING NOT NULL>,
  m MAP<STRING, DECIMAL(10, 2)>, bag MULTISET<STRING>, r ROW<x INT NOT NULL, `y z` ROW<q BOOLEAN>>, PRIMARY KEY (id, part) NOT ENFORCED
) WITH ('connector' = 'blackhole');
DESCRIBE t;
DESC t;
