-- Columns of a table and of a view, all and by their names.
CREATE TABLE t (id INT NOT NULL, name STRING, price DECIMAL(10, 2), amount BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'blackhole');
CREATE VIEW v AS SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS t(x);
SHOW COLUMNS FROM t;
SHOW COLUMNS IN t LIKE '%a%';
SHOW COLUMNS FROM t NOT LIKE 'n___';
SHOW COLUMNS FROM v;
