SELECT evaluation_id FROM evaluations WHERE NOT published ORDER BY evaluation_id LIMIT %s;
