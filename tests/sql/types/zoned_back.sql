-- From clocks to points in time; the hour that there is twice is the first, that which there is not is the next.
SET 'table.local-time-zone' = 'America/New_York';
SELECT x, CAST(x AS TIMESTAMP_LTZ(3)), UNIX_TIMESTAMP(DATE_FORMAT(x, 'yyyy-MM-dd HH:mm:ss')) FROM (VALUES
  (TIMESTAMP '2024-03-10 01:30:00'), (TIMESTAMP '2024-03-10 03:30:00'), (TIMESTAMP '2024-11-03 00:30:00'), (TIMESTAMP '2024-11-03 03:30:00'), (TIMESTAMP '1969-12-31 19:00:00')
) AS t(x);
