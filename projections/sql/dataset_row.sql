SELECT name, project, source, tags, cases, imported_at
FROM datasets
WHERE project = %s AND name = %s
