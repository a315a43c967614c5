-- Names that are words of SQL, with blanks, quotes and other alphabets.
SELECT t.`select`, t.`a b`, t.`茶`, t.`it``s`, `t`.`Order` FROM (VALUES (1, 2, 3, 4, 5)) AS t(`select`, `a b`, `茶`, `it``s`, `Order`);
