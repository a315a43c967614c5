-- Texts are in the order of their code points, whatever their alphabet; the case counts.
SELECT MIN(s), MAX(s), MIN(UPPER(s)), MAX(LOWER(s)) FROM (VALUES ('Zebra'), ('apple'), ('Äpfel'), ('茶'), ('ﬀ'), (' '), ('~')) AS t(s);
