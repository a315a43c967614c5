-- INTERSECT comes before UNION; parentheses before all.
SELECT a FROM (VALUES (1), (2)) AS t(a) UNION SELECT a FROM (VALUES (2), (3)) AS t(a) INTERSECT SELECT a FROM (VALUES (3), (4)) AS t(a)
EXCEPT (SELECT a FROM (VALUES (1), (9)) AS t(a) UNION ALL SELECT a FROM (VALUES (9)) AS t(a));
