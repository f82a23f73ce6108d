SELECT q.reason, count(*)
FROM evaluations v
JOIN quarantine q ON q.evaluation_id = v.evaluation_id
WHERE v.batch_id = %s
GROUP BY 1
ORDER BY 2 DESC, 1;
