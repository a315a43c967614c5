-- ON ERROR covers the conversion to the type that is returned: a number is no BOOLEAN (FLINK-40463).
-- R06
CREATE TABLE documents (id INT, doc STRING) WITH ('connector' = 'filesystem', 'path' = 'data/documents.json', 'format' = 'json');
SELECT id, JSON_VALUE(doc, '$.v' RETURNING BOOLEAN NULL ON ERROR), JSON_VALUE(doc, '$.v' RETURNING DOUBLE NULL ON ERROR) FROM documents WHERE id < 4;
