SELECT extract(epoch FROM coalesce(v.ended_at, now()) - min(e.occurred_at))::double precision AS took
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.evaluation_id = ${evaluation:sqlstring}
GROUP BY v.ended_at;
