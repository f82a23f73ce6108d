SELECT v.evaluation_id, v.state, v.attempt, v.owner,
       extract(epoch FROM coalesce(v.ended_at, max(e.occurred_at)) - min(e.occurred_at))::double precision
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.batch_id = %s
GROUP BY v.evaluation_id
ORDER BY 5 DESC, v.evaluation_id
LIMIT %s;
