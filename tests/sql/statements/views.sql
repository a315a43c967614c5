-- Views of views, with columns of other names, that are replaced and dropped.
CREATE VIEW a (x, y) AS SELECT id, k FROM (VALUES (1, 'p'), (2, 'q')) AS t(id, k);
CREATE TEMPORARY VIEW b AS SELECT x + 10 AS x, y FROM a;
CREATE VIEW c AS SELECT 'old' AS z;
DROP VIEW c;
CREATE VIEW c AS SELECT b.x, a.y FROM b JOIN a ON b.y = a.y WHERE a.x > 1;
SELECT * FROM c;
