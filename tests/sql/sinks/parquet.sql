-- Values of many types as Parquet, and back, of which a condition leaves some out.
CREATE TABLE written (
  id INT, name STRING, price DECIMAL(10, 2), big DECIMAL(38, 18), d DOUBLE, ok BOOLEAN, seen TIMESTAMP(3), near TIMESTAMP(9), dt DATE, r ROW<x INT, y STRING>
) WITH ('connector' = 'filesystem', 'path' = 'out/written', 'format' = 'parquet');
INSERT INTO written VALUES
  (1, 'é', 1.25, 0.000000000000000001, 1.5E0, TRUE, TIMESTAMP '2024-01-02 03:04:05.678', TIMESTAMP '2024-01-02 03:04:05.123456789', DATE '2024-02-29', ROW(7, 'seven')),
  (2, '', -0.01, CAST('12345678901234567890.123456789012345678' AS DECIMAL(38, 18)), -0.5E0, FALSE, TIMESTAMP '9999-12-31 23:59:59.999', TIMESTAMP '2001-01-01 00:00:00', DATE '1969-12-31', ROW(8, '')),
  (3, CAST(NULL AS STRING), CAST(NULL AS DECIMAL(10, 2)), CAST(NULL AS DECIMAL(38, 18)), CAST(NULL AS DOUBLE), CAST(NULL AS BOOLEAN), CAST(NULL AS TIMESTAMP(3)), CAST(NULL AS TIMESTAMP(9)), CAST(NULL AS DATE),
    CAST(NULL AS ROW<x INT, y STRING>)),
  (4, 'left out', 0, 0, 0E0, TRUE, TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-01 00:00:00', DATE '2024-01-01', ROW(0, 'x'));
SELECT id, name, price, big, d, ok, seen, near, dt, r.x, r.y FROM written WHERE id < 4;
