SELECT evaluation_id
FROM evaluations
WHERE batch_id = %s AND evaluation_id > %s
ORDER BY evaluation_id
LIMIT %s;
