-- Cheap counts for metrics: their cost does not grow with the number of evaluations.

-- name: active_batches
-- Returns unfinished batches: the oldest one by one, all others summed without an id.
WITH active AS (
    SELECT b.batch_id, b.state, b.accepted_at, b.max_cost_usd, b.max_tokens, b.unrecorded_usd, b.unrecorded_tokens,
           is_scored(b) AS is_scored, c.*,
           row_number() OVER (ORDER BY b.accepted_at, b.batch_id) <= %(limit)s AS is_named,
           (SELECT max(p.last_ended_at) FROM batch_progress p WHERE p.batch_id = b.batch_id) AS last_ended_at,
           (SELECT max(e.at) FROM batch_events e WHERE e.batch_id = b.batch_id AND e.type = 'running') AS resumed_at
    FROM batches b
    CROSS JOIN LATERAL progress_of(b) c
    WHERE b.kind = 'submitted' AND b.total IS NOT NULL AND b.finished_at IS NULL AND b.run_id = %(run_id)s
)
SELECT CASE WHEN a.is_named THEN a.batch_id END,
       count(*) FILTER (WHERE a.state <> 'paused'), count(*) FILTER (WHERE a.state = 'paused'),
       extract(epoch FROM min(a.accepted_at))::float8,
       max(CASE WHEN a.state = 'paused' THEN 0
                ELSE extract(epoch FROM now() - greatest(a.last_ended_at, a.accepted_at, a.resumed_at)) END)::float8,
       max(greatest((a.cost_usd + a.unrecorded_usd) / a.max_cost_usd,
                    (a.tokens + a.unrecorded_tokens)::numeric / a.max_tokens))::float8,
       bool_or(a.is_scored),
       sum(a.total)::bigint, sum(a.completed)::bigint, coalesce(sum(a.passed) FILTER (WHERE a.is_scored), 0)::bigint,
       sum(a.failed)::bigint, sum(a.timed_out)::bigint, sum(a.cancelled)::bigint, sum(a.retried)::bigint,
       sum(a.bridged)::bigint, sum(a.scored)::bigint, sum(a.score_sum), sum(a.tokens)::bigint, sum(a.cost_usd)
FROM active a
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
