SELECT a.x, b.y FROM (VALUES ('p', ROW(1, 'a')), ('q', ROW(2, 'b'))) AS a(x, r)
JOIN (VALUES ('s', ROW(1, 'a')), ('t', ROW(2, 'c'))) AS b(y, r) ON a.r = b.r;
