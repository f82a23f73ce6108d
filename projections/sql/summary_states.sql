SELECT state, count(*)
FROM evaluations
WHERE batch_id = %s
GROUP BY 1
ORDER BY 2 DESC, 1;
