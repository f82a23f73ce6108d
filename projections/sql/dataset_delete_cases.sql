DELETE FROM test_cases WHERE project = %s AND dataset = %s
