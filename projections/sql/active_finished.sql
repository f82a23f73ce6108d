-- Submitted batches that finished within a span of time, newest first.
SELECT b.batch_id, b.state, b.total, coalesce(sum(p.completed), 0)::bigint,
       extract(epoch FROM b.finished_at)::float8
FROM batches b
LEFT JOIN batch_progress p USING (batch_id)
WHERE b.kind = 'submitted' AND b.total IS NOT NULL AND b.finished_at > now() - %(within)s::interval
GROUP BY b.batch_id
ORDER BY b.finished_at DESC, b.batch_id
LIMIT %(limit)s;
