-- Bytes, of texts and of hexadecimal digits.
SELECT HEX(CAST(x AS STRING)), CAST(x AS STRING), x = y, CAST(CAST(s AS BYTES) AS STRING), TO_BASE64(s), FROM_BASE64('6Iy2'), CAST(x'e88cb6' AS STRING), DECODE(ENCODE(s, 'UTF-16LE'), 'UTF-16LE') FROM (VALUES
  (x'616263', x'616263', '茶'), (x'', x'00', ''), (CAST(NULL AS BYTES), x'7a', CAST(NULL AS STRING))
) AS t(x, y, s);
