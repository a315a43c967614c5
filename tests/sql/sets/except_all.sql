SELECT a FROM (VALUES (1), (1), (2), (2), (2)) AS t(a)
EXCEPT ALL SELECT b FROM (VALUES (2), (1)) AS u(b);
