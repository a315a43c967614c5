-- Names with databases and catalogs.
CREATE DATABASE other;
CREATE VIEW other.v AS SELECT 1 AS a;
USE other;
CREATE VIEW w AS SELECT a + 1 AS a FROM v;
CREATE CATALOG c WITH ('type' = 'generic_in_memory');
USE CATALOG c;
CREATE DATABASE d;
CREATE VIEW d.v AS SELECT 3 AS a;
SELECT a FROM d.v UNION ALL SELECT a FROM default_catalog.other.w UNION ALL SELECT a FROM c.d.v;
