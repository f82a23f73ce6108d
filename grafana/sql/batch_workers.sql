SELECT e.event #>> '{data,executor}' AS worker, count(*) AS attempts,
       count(*) FILTER (WHERE e.attempt < v.attempt) AS "lost or retried",
       min(e.occurred_at) AS first, max(e.occurred_at) AS last
FROM sampled(${batch:sqlstring}, 500) AS v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.sequence = 1
WHERE e.type = 'provisioning'
GROUP BY 1
ORDER BY 2 DESC, 1
LIMIT 100;
