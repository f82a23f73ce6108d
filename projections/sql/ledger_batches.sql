SELECT b.batch_id, b.month, b.name, b.project, b.priority, b.spec::text, b.state, b.reason,
       coalesce(b.total, 0), coalesce(c.ended, 0)::bigint,
       coalesce((SELECT sum(w.evaluations) FROM batch_windows w WHERE w.batch_id = b.batch_id), 0)::bigint
         + b.told_apart,
       b.published_to, b.deadline, b.finished_at IS NOT NULL, b.accepted_at,
       b.max_cost_usd, b.max_tokens, coalesce(c.cost_usd, 0), coalesce(c.tokens, 0)::bigint,
       coalesce(c.failed, 0)::bigint, coalesce(c.completed, 0)::bigint,
       b.unrecorded_usd, b.unrecorded_tokens, coalesce(b.next_usd, 0), coalesce(b.next_tokens, 0),
       b.run_id
FROM batches b
CROSS JOIN LATERAL (
    SELECT sum(p.completed + p.failed + p.timed_out + p.cancelled) AS ended, sum(p.failed) AS failed, sum(p.completed) AS completed,
           sum(p.cost_usd) AS cost_usd, sum(p.tokens) AS tokens
    FROM batch_progress p
    WHERE p.batch_id = b.batch_id
) c
WHERE b.kind = 'submitted' AND b.total IS NOT NULL
  AND CASE WHEN %(batch_id)s::text IS NULL THEN b.finished_at IS NULL AND b.run_id = %(run_id)s ELSE b.batch_id = %(batch_id)s END
ORDER BY b.accepted_at, b.batch_id;
