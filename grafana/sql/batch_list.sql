SELECT b.batch_id AS batch, b.name, b.dataset,
       CASE WHEN b.finished_at IS NULL OR b.state <> 'running' THEN b.state ELSE 'completed' END AS state,
       b.accepted_at AS accepted, p.total AS evaluations, p.total - p.pending AS ended,
       pass_rate(p.passed, p.total - p.pending, is_scored(b)) AS "pass rate", p.cost_usd AS cost
FROM (SELECT batch_id FROM batches ORDER BY accepted_at DESC LIMIT 25) AS newest
JOIN batches b USING (batch_id)
LEFT JOIN LATERAL (SELECT * FROM batch_status s WHERE s.batch_id = b.batch_id) AS p ON true
ORDER BY b.accepted_at DESC;
