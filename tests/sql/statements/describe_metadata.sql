-- Columns with metadata, of the same name, of another, and those that are only read.
CREATE TABLE t (id INT, `timestamp` TIMESTAMP_LTZ(3) METADATA, part INT METADATA FROM 'partition', `offset` BIGINT METADATA VIRTUAL, sent TIMESTAMP_LTZ(3) METADATA FROM 'sent-at' VIRTUAL)
WITH ('connector' = 'blackhole');
DESCRIBE t;
