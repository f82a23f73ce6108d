-- Aggregates over the whole log of one batch, for replay and audit.

-- name: summary_span
-- Returns kind, acceptance, first and last event, and the number of events and attempts of a batch.
SELECT b.kind, b.accepted_at, count(e.*), min(e.occurred_at), max(e.occurred_at),
       count(e.*) FILTER (WHERE e.sequence = 0), is_scored(b)
FROM batches b
LEFT JOIN evaluations v ON v.batch_id = b.batch_id
LEFT JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE b.batch_id = %s
GROUP BY b.batch_id;

-- name: summary_states
-- Counts the evaluations of a batch by state.
SELECT state, count(*)
FROM evaluations
WHERE batch_id = %s
GROUP BY 1
ORDER BY 2 DESC, 1;

-- name: summary_retries
-- Counts the further attempts of a batch by the reason they were opened for.
SELECT e.event #>> '{data,reason}', count(*)
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.batch_id = %s AND e.sequence = 0 AND e.type = 'queued' AND e.attempt > 1 AND e.verdict = 'applied'
GROUP BY 1
ORDER BY 2 DESC, 1;

-- name: summary_waits
-- Returns the distribution of time between two applied events of an attempt, by event types.
WITH steps AS (
    SELECT lag(e.type) OVER attempt AS before,
           e.type || CASE WHEN g.attempt IS NULL THEN '' ELSE ' (bridged)' END AS type,
           extract(epoch FROM e.occurred_at - lag(e.occurred_at) OVER attempt)::double precision AS seconds
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
    LEFT JOIN gap_bridges g ON g.evaluation_id = e.evaluation_id AND g.attempt = e.attempt
                           AND g.closing_sequence = e.sequence
    WHERE v.batch_id = %s AND e.verdict = 'applied'
    WINDOW attempt AS (PARTITION BY e.evaluation_id, e.attempt ORDER BY e.sequence)
)
SELECT before || ' → ' || type, count(*),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds),
       max(seconds)
FROM steps
WHERE before IS NOT NULL
GROUP BY before, type
ORDER BY count(*) DESC, 1;

-- name: summary_storing
-- Returns the distribution of time that events lay in Redis before they were stored. Two clocks: a negative
-- delay counts as 0.
WITH delays AS (
    SELECT greatest(
        0, extract(epoch FROM e.recorded_at)::double precision
           - split_part(e.entry_id, '-', 1)::double precision / 1000
    ) AS seconds
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
    -- Openings that were committed before they were appended did not lie in Redis.
    WHERE v.batch_id = %s AND e.entry_id ~ '^[0-9]+-' AND split_part(e.entry_id, '-', 2)::numeric < 1000000
)
SELECT 'arrived → stored', count(*),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds),
       max(seconds)
FROM delays
HAVING count(*) > 0;

-- name: summary_executors
-- Returns the attempts of each executor: how they closed and how long they took.
WITH attempts AS (
    SELECT max(e.event #>> '{data,executor}') FILTER (WHERE e.type = 'provisioning') AS executor,
           max(e.type) FILTER (WHERE e.type IN ('completed', 'retrying', 'failed', 'timed_out')) AS closed_by,
           extract(epoch FROM max(e.occurred_at) - min(e.occurred_at) FILTER (WHERE e.type = 'provisioning')
           )::double precision AS seconds
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
    WHERE v.batch_id = %s AND e.verdict = 'applied'
    GROUP BY e.evaluation_id, e.attempt
)
SELECT executor, count(*),
       count(*) FILTER (WHERE closed_by = 'completed'),
       count(*) FILTER (WHERE closed_by = 'retrying'),
       count(*) FILTER (WHERE closed_by IN ('failed', 'timed_out')),
       count(*) FILTER (WHERE closed_by IS NULL),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
       max(seconds)
FROM attempts
WHERE executor IS NOT NULL
GROUP BY executor
ORDER BY 2 DESC, 1
LIMIT %s;

-- name: summary_slowest
-- Returns the slowest evaluations of a batch.
SELECT v.evaluation_id, v.state, v.attempt, v.owner,
       extract(epoch FROM coalesce(v.ended_at, max(e.occurred_at)) - min(e.occurred_at))::double precision
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.batch_id = %s
GROUP BY v.evaluation_id
ORDER BY 5 DESC, v.evaluation_id
LIMIT %s;

-- name: summary_quarantine
-- Counts the quarantined entries of a batch by reason.
SELECT q.reason, count(*)
FROM evaluations v
JOIN quarantine q ON q.evaluation_id = v.evaluation_id
WHERE v.batch_id = %s
GROUP BY 1
ORDER BY 2 DESC, 1;
