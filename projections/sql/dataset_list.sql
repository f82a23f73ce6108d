SELECT name, project, source, tags, cases, imported_at
FROM datasets
WHERE project = %(project)s::text OR %(project)s::text IS NULL
ORDER BY project, name
