SELECT position, case_id, input::text, expected::text, tags, fields::text
FROM test_cases
WHERE project = %s AND dataset = %s
ORDER BY position
LIMIT %s
