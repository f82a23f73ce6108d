SELECT evaluation_id
FROM evaluations
WHERE batch_id = %(batch_id)s AND ended_at IS NULL AND evaluation_id > %(after)s
ORDER BY evaluation_id
LIMIT %(limit)s;
