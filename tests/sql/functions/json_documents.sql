-- Paths into documents of which some are none.
CREATE TABLE documents (id INT, doc STRING) WITH ('connector' = 'filesystem', 'path' = 'data/documents.json', 'format' = 'json');
SELECT id, doc IS JSON, doc IS JSON OBJECT, JSON_EXISTS(doc, '$.a.b'), JSON_VALUE(doc, '$.v'), JSON_VALUE(doc, '$.v' DEFAULT 'none' ON EMPTY DEFAULT 'bad' ON ERROR),
  JSON_VALUE(doc, 'lax $.a.b[1].c'), JSON_QUERY(doc, '$.a.b'), JSON_QUERY(doc, 'lax $.e' WITH WRAPPER), JSON_VALUE(doc, 'lax $[1]') FROM documents WHERE id < 8;
