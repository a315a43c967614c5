-- Flink cuts such a character in two.
SELECT '😀', 'xx😀', '😀éé', 1, '😀Xbc', 'b', 'b😀', '😀';
