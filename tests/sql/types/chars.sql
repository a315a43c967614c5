-- CHAR is padded and cut, VARCHAR is cut.
SELECT CAST('abc' AS CHAR(5)) || '|', CAST('abcdef' AS CHAR(3)), CAST('abcdef' AS VARCHAR(2)), CAST('日本茶' AS VARCHAR(2)), CAST(12345 AS VARCHAR(3)), CHAR_LENGTH(CAST('é' AS CHAR(3))),
  CAST(TRUE AS VARCHAR(2)), CAST('a' AS CHAR(3)) = 'a';
