-- Cheap counts for metrics: their cost does not grow with the number of evaluations.

-- name: active_batches
-- Returns unfinished batches: the oldest one by one, all others summed without an id.
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

-- name: recently_finished_batches
-- Returns submitted batches that finished within an interval, newest first.
SELECT b.batch_id, b.state, b.total, coalesce(sum(p.completed), 0)::bigint,
       extract(epoch FROM b.finished_at)::float8
FROM batches b
LEFT JOIN batch_progress p USING (batch_id)
WHERE b.kind = 'submitted' AND b.total IS NOT NULL AND b.finished_at > now() - %(within)s::interval
GROUP BY b.batch_id
ORDER BY b.finished_at DESC, b.batch_id
LIMIT %(limit)s;

-- name: running_batch_specs
-- Returns the specs of the batches whose evaluations executors may be working on.
SELECT b.batch_id, b.spec::text
FROM batches b
WHERE b.kind = 'submitted' AND b.total IS NOT NULL AND b.finished_at IS NULL AND b.run_id = %(run_id)s
  AND b.state NOT IN ('paused', 'cancelled', 'expired');

-- name: stuck_evaluations
-- Counts published evaluations of some batches, unchanged for long beyond the attempt deadline, up to a limit.
-- Queued ones count only where nothing of their batch has ended for as long: no executor serves it then.
WITH running AS MATERIALIZED (
    SELECT b.batch_id, b.published_to, t.since,
           greatest(b.accepted_at,
                    (SELECT max(p.last_ended_at) FROM batch_progress p WHERE p.batch_id = b.batch_id),
                    (SELECT max(e.at) FROM batch_events e WHERE e.batch_id = b.batch_id AND e.type = 'running')
           ) < t.since AS is_idle
    FROM unnest(%(batch_ids)s::text[], %(deadlines)s::interval[]) AS d (batch_id, deadline)
    JOIN batches b ON b.batch_id = d.batch_id
    CROSS JOIN LATERAL (SELECT now() - %(beyond)s::interval - d.deadline AS since) t
    WHERE b.accepted_at < t.since
)
SELECT least(%(limit)s, coalesce(sum(stuck.many), 0))
FROM running r
CROSS JOIN LATERAL (
    SELECT count(*) AS many
    FROM (
        SELECT
        FROM (
            SELECT v
            FROM evaluations v
            WHERE v.batch_id = r.batch_id AND v.ended_at IS NULL AND v.evaluation_id <= r.published_to
              AND v.updated_at < r.since AND v.asked_in IS NULL
              AND (r.is_idle OR v.state NOT IN ('queued', 'retrying'))
            OFFSET 0  -- the epoch is looked up only for the remaining rows
        ) old
        WHERE epoch_of(old.v) <> ''
        LIMIT %(limit)s
    ) found
) stuck;

-- name: submitted_provider_batches
-- Counts the provider batches that are submitted and not ended.
SELECT count(*)
FROM provider_batches p
JOIN batches b USING (batch_id)
WHERE p.state = 'submitted' AND b.run_id = %(run_id)s;
