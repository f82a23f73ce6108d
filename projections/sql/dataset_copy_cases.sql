COPY test_cases (project, dataset, position, case_id, input, expected, tags, fields) FROM STDIN
