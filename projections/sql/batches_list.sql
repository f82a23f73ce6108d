-- The newest batches with their counters; a batch is completed only once it is over.
SELECT b.batch_id, b.name, b.project, w.status, coalesce(b.total, s.total, 0), coalesce(s.completed, 0),
       coalesce(s.passed, 0), coalesce(s.failed, 0), coalesce(s.timed_out, 0), coalesce(s.cancelled, 0),
       coalesce(s.cost_usd, 0), b.accepted_at, b.finished_at, now(), is_scored(b), b.run_id, b.unrecorded_usd
FROM batches b
CROSS JOIN LATERAL (
    SELECT CASE WHEN b.kind = 'external' THEN 'external'
                WHEN b.state = 'running' AND b.finished_at IS NOT NULL THEN 'completed'
                WHEN b.state = 'completed' AND b.finished_at IS NULL THEN 'running'
                ELSE b.state END AS status
) w
LEFT JOIN LATERAL (SELECT * FROM batch_status p WHERE p.batch_id = b.batch_id) s ON true
WHERE (%(status)s::text IS NULL OR w.status = %(status)s)
  AND (%(project)s::text IS NULL OR b.project = %(project)s)
ORDER BY b.accepted_at DESC, b.batch_id DESC
LIMIT %(limit)s;
