-- Rows of `datasets` and `test_cases`.

-- name: dataset_insert
-- Inserts a dataset before its cases: a concurrent import of the same name waits here and then fails.
INSERT INTO datasets (project, name, source, tags, cases)
VALUES (%s, %s, %s, %s, 0)
ON CONFLICT DO NOTHING

-- name: dataset_copy_cases
-- COPY target for the cases of a dataset.
COPY test_cases (project, dataset, position, case_id, input, expected, tags, fields) FROM STDIN

-- name: dataset_count
-- Sets the number of cases of a dataset.
UPDATE datasets SET cases = %s WHERE project = %s AND name = %s

-- name: dataset_delete_cases
-- Deletes the cases of a dataset.
DELETE FROM test_cases WHERE project = %s AND dataset = %s

-- name: dataset_delete
-- Deletes a dataset.
DELETE FROM datasets WHERE project = %s AND name = %s

-- name: dataset_list
-- Returns the datasets of one project, or of all.
SELECT name, project, source, tags, cases, imported_at
FROM datasets
WHERE project = %(project)s::text OR %(project)s::text IS NULL
ORDER BY project, name

-- name: dataset_row
-- Returns one dataset.
SELECT name, project, source, tags, cases, imported_at
FROM datasets
WHERE project = %s AND name = %s

-- name: dataset_cases
-- Streams the cases of a dataset in order.
SELECT position, case_id, input::text, expected::text, tags, fields::text
FROM test_cases
WHERE project = %s AND dataset = %s
ORDER BY position
LIMIT %s

-- name: dataset_mentions
-- Returns whether the fields of any case match a pattern.
SELECT EXISTS (
    SELECT FROM test_cases
    WHERE project = %s AND dataset = %s AND fields::text ~ %s
)
