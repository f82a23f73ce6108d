-- Batches that are not over: the oldest one by one, all others added up without an id.
WITH active AS (
    SELECT b.batch_id, b.state, b.accepted_at, b.max_cost_usd, b.max_tokens, b.unrecorded_usd,
           b.unrecorded_tokens, is_scored(b) AS is_scored,
           row_number() OVER (ORDER BY b.accepted_at, b.batch_id) <= %(limit)s AS is_named,
           (SELECT max(e.at) FROM batch_events e WHERE e.batch_id = b.batch_id AND e.type = 'running') AS resumed_at
    FROM batches b
    WHERE b.kind = 'submitted' AND b.total IS NOT NULL AND b.finished_at IS NULL AND b.run_id = %(run_id)s
), counted AS (
    SELECT p.batch_id, sum(p.total - p.completed - p.failed - p.timed_out - p.cancelled) AS pending,
           sum(p.completed) AS completed, sum(p.failed) AS failed, sum(p.timed_out) AS timed_out,
           sum(p.cancelled) AS cancelled, sum(p.passed) AS passed, sum(p.cost_usd) AS cost_usd,
           sum(p.tokens) AS tokens, max(p.last_ended_at) AS last_ended_at
    FROM batch_progress p
    WHERE p.batch_id IN (SELECT batch_id FROM active)
    GROUP BY p.batch_id
)
SELECT CASE WHEN a.is_named THEN a.batch_id END,
       count(*) FILTER (WHERE a.state <> 'paused'), count(*) FILTER (WHERE a.state = 'paused'),
       coalesce(sum(c.pending), 0)::bigint, coalesce(sum(c.completed), 0)::bigint, coalesce(sum(c.failed), 0)::bigint,
       coalesce(sum(c.timed_out), 0)::bigint, coalesce(sum(c.cancelled), 0)::bigint,
       CASE WHEN bool_or(a.is_scored) THEN coalesce(sum(c.passed) FILTER (WHERE a.is_scored), 0) END::bigint, coalesce(sum(c.cost_usd), 0)::float8,
       extract(epoch FROM min(a.accepted_at))::float8,
       max(CASE WHEN a.state = 'paused' THEN 0
                ELSE extract(epoch FROM now() - greatest(c.last_ended_at, a.accepted_at, a.resumed_at)) END)::float8,
       max(greatest((coalesce(c.cost_usd, 0) + a.unrecorded_usd) / a.max_cost_usd,
                    (coalesce(c.tokens, 0) + a.unrecorded_tokens) / a.max_tokens))::float8
FROM active a
LEFT JOIN counted c USING (batch_id)
GROUP BY 1
ORDER BY min(a.accepted_at), 1;
