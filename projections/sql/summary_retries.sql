SELECT e.event #>> '{data,reason}', count(*)
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.batch_id = %s AND e.sequence = 0 AND e.type = 'queued' AND e.attempt > 1 AND e.verdict = 'applied'
GROUP BY 1
ORDER BY 2 DESC, 1;
