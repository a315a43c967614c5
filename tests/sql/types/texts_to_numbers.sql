-- What is no number is null with TRY_CAST.
SELECT s, TRY_CAST(s AS INT), TRY_CAST(s AS BIGINT), TRY_CAST(s AS TINYINT), TRY_CAST(s AS DOUBLE), TRY_CAST(s AS DECIMAL(5, 2)), TRY_CAST(s AS BOOLEAN) FROM (VALUES
  ('0'), ('-1'), ('+5'), ('127'), ('128'), ('2147483648'), ('9223372036854775808'), (' 42 '), ('1.5'), ('1e3'), ('-0'), ('true'), ('FALSE'), ('yes'), ('1'), ('0x10')
) AS t(s);
