SELECT b.kind, b.accepted_at, count(e.*), min(e.occurred_at), max(e.occurred_at),
       count(e.*) FILTER (WHERE e.sequence = 0), is_scored(b)
FROM batches b
LEFT JOIN evaluations v ON v.batch_id = b.batch_id
LEFT JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE b.batch_id = %s
GROUP BY b.batch_id;
