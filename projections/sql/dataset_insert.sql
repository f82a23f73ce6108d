-- Before the cases: whoever imports the same name at the same time waits here, and is told.
INSERT INTO datasets (project, name, source, tags, cases)
VALUES (%s, %s, %s, %s, 0)
ON CONFLICT DO NOTHING
