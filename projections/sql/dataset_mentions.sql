SELECT EXISTS (
    SELECT FROM test_cases
    WHERE project = %s AND dataset = %s AND fields::text ~ %s
)
