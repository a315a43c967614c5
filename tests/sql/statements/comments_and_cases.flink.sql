-- Without comments, which not every client of Flink takes apart.
SELECT 'IT''S -' || '- NO COMMENT', 1;
