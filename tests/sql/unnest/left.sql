-- An outer join keeps its left row, whether its list is empty or null.
-- R08
CREATE VIEW lists AS SELECT * FROM (VALUES
  (1, ARRAY[7, 8]), (2, ARRAY_REMOVE(ARRAY[1], 1)), (3, CAST(NULL AS ARRAY<INT>))
) AS t(id, xs);
SELECT id, x FROM lists LEFT JOIN UNNEST(lists.xs) AS u(x) ON TRUE;
