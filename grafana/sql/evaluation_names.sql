SELECT evaluation_id
FROM evaluations
WHERE batch_id = ${batch:sqlstring}
ORDER BY evaluation_id
LIMIT 500;
