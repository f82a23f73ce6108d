-- The coordinator's ledger: acceptance and lifecycle of batches.

-- name: ledger_now
-- Returns the database's time of day.
SELECT clock_timestamp();

-- name: ensure_month
-- Ensures the event partition of a month.
SELECT ensure_events_partition(date_trunc('month', %s::timestamptz AT TIME ZONE 'UTC')::date);

-- name: insert_batch
-- Inserts a submitted batch and returns its month; no row if the id is taken.
INSERT INTO batches (batch_id, kind, month, name, project, dataset, tags, priority, spec, accepted_at, deadline,
                     max_cost_usd, max_tokens, run_id)
VALUES (%(batch_id)s, 'submitted', date_trunc('month', %(now)s::timestamptz AT TIME ZONE 'UTC')::date, %(name)s,
        %(project)s, %(dataset)s, %(tags)s, %(priority)s, %(spec)s::json, %(now)s,
        %(now)s::timestamptz + %(max_duration)s::interval,
        %(max_cost_usd)s, %(max_tokens)s, %(run_id)s)
ON CONFLICT DO NOTHING
RETURNING month;

-- name: copy_accepted_evaluations
-- COPY target for the evaluations of an accepted batch (binary).
COPY evaluations (evaluation_id, batch_id, month, shard, attempt, sequence, state, case_id, variant, repetition)
FROM STDIN (FORMAT binary)

-- name: insert_serial_links
-- Inserts the serial-group links of accepted evaluations.
INSERT INTO serial_links (evaluation_id, batch_id, follows, needs, recalls)
SELECT evaluation_id, %(batch_id)s, follows,
       ARRAY(SELECT DISTINCT recall ->> 0 FROM json_array_elements(recalls) recall), recalls
FROM unnest(%(evaluation_ids)s::text[], %(follows)s::text[], %(recalls)s::json[])
    AS link (evaluation_id, follows, recalls);

-- name: insert_cache_keys
-- Inserts the cache keys of accepted evaluations; known ones stay.
INSERT INTO responses (cache_key, month, evaluation_id)
SELECT cache_key, %(month)s, evaluation_id
FROM unnest(%(cache_keys)s::text[], %(evaluation_ids)s::text[]) AS asked (cache_key, evaluation_id)
ON CONFLICT DO NOTHING;

-- name: set_batch_total
-- Sets the total of a batch, which makes it visible, and records its acceptance.
WITH recorded AS (
    INSERT INTO batch_events (batch_id, type, by_whom) VALUES (%(batch_id)s, 'accepted', %(by)s)
)
UPDATE batches SET total = %(total)s WHERE batch_id = %(batch_id)s;

-- name: cached_responses
-- Returns the newest `responded` event of each cache key, in any month.
SELECT DISTINCT ON (r.cache_key) r.cache_key, convert_to(e.event::text, 'UTF8')
FROM responses r
JOIN events e ON e.month = r.month AND e.evaluation_id = r.evaluation_id AND e.type = 'responded'
WHERE r.cache_key = ANY(%b)
ORDER BY r.cache_key, e.recorded_at DESC, e.evaluation_id DESC, e.attempt DESC;

-- name: ledger_batches
-- Returns one batch, or the unfinished batches of a run, oldest first, with their summed counters.
SELECT b.batch_id, b.month, b.name, b.project, b.priority, b.spec::text, b.state, b.reason,
       coalesce((SELECT sum(w.evaluations) FROM batch_windows w WHERE w.batch_id = b.batch_id), 0)::bigint
         + b.told_apart,
       b.published_to, b.deadline, b.finished_at IS NOT NULL, b.accepted_at, b.run_id,
       b.max_cost_usd, b.max_tokens, c.cost_usd + b.unrecorded_usd, c.tokens + b.unrecorded_tokens,
       coalesce(b.next_usd, 0), coalesce(b.next_tokens, 0), b.unrecorded_usd, b.unrecorded_tokens,
       c.*
FROM batches b
CROSS JOIN LATERAL progress_of(b) c
WHERE b.kind = 'submitted' AND b.total IS NOT NULL
  AND CASE WHEN %(batch_id)s::text IS NULL THEN b.finished_at IS NULL AND b.run_id = %(run_id)s ELSE b.batch_id = %(batch_id)s END
ORDER BY b.accepted_at, b.batch_id;

-- name: batches_of_other_runs
-- Returns those of some unfinished batches that another run serves.
SELECT batch_id
FROM batches
WHERE batch_id = ANY(%(batch_ids)s::text[]) AND kind = 'submitted' AND finished_at IS NULL AND run_id <> %(run_id)s;

-- name: assign_run
-- Sets the run that serves a batch: coordinators and executors of the previous run no longer serve it.
WITH assigned AS (
    UPDATE batches
    SET run_id = %(run_id)s
    WHERE batch_id = %(batch_id)s AND kind = 'submitted' AND run_id <> %(run_id)s
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom, reason)
SELECT batch_id, 'assigned', %(by)s, %(reason)s FROM assigned;

-- name: request_batch_state
-- Pauses, resumes or stops an unfinished batch, and records it; a stopped batch stays stopped.
WITH asked AS (
    UPDATE batches
    SET state = %(state)s, reason = %(reason)s,
        next_usd = CASE WHEN %(state)s = 'running' THEN NULL ELSE next_usd END,
        next_tokens = CASE WHEN %(state)s = 'running' THEN NULL ELSE next_tokens END
    WHERE batch_id = %(batch_id)s AND kind = 'submitted' AND finished_at IS NULL
      AND state IN ('running', 'paused') AND state <> %(state)s
      AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s)
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom, reason)
SELECT batch_id, %(state)s, %(by)s, %(reason)s FROM asked;

-- name: set_batch_budget
-- Sets the limits of a batch and records it.
WITH allowed AS (
    UPDATE batches
    SET max_cost_usd = %(max_cost_usd)s, max_tokens = %(max_tokens)s
    WHERE batch_id = %(batch_id)s AND kind = 'submitted'
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom, reason)
SELECT batch_id, 'budget', %(by)s, %(reason)s FROM allowed;

-- name: raise_unrecorded_spend
-- Raises the estimated spend that no event records; never lowers it.
UPDATE batches
SET unrecorded_usd = greatest(unrecorded_usd, %(usd)s), unrecorded_tokens = greatest(unrecorded_tokens, %(tokens)s)
WHERE batch_id = %(batch_id)s AND kind = 'submitted';

-- name: set_next_call_cost
-- Sets what the next call may cost.
UPDATE batches
SET next_usd = %(usd)s, next_tokens = %(tokens)s
WHERE batch_id = %(batch_id)s AND kind = 'submitted' AND finished_at IS NULL;

-- name: spent_by_source
-- Sums the recorded cost and tokens of a batch by event source, as `batch_progress` counts them.
SELECT e.event ->> 'source',
       sum(coalesce((e.event #>> '{data,cost_usd}')::numeric, 0)),
       sum(coalesce((e.event #>> '{data,usage,input_tokens}')::bigint, 0)
           + coalesce((e.event #>> '{data,usage,output_tokens}')::bigint, 0))::bigint
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.batch_id = %(batch_id)s AND e.type IN ('responded', 'scored') AND e.verdict <> 'rejected'
  AND NOT coalesce((e.event #>> '{data,cached}')::boolean, false)
GROUP BY 1;

-- name: newest_failures
-- Returns the newest failures of a batch. One that closes at sequence 1 was closed by the coordinator itself.
SELECT s.error ->> 'kind', coalesce(s.error ->> 'message', ''), v.sequence > 1 OR o.reason = 'lost',
       o.reason NOT IN ('retry', 'lost')
FROM (
    -- Ordered by when they were stored: `ended_at` is of the executors' clocks.
    SELECT c.evaluation_id, c.attempt, c.error
    FROM scorecards c
    JOIN evaluations e USING (evaluation_id)
    WHERE c.batch_id = %(batch_id)s AND c.status = 'failed'
    ORDER BY e.updated_at DESC, c.evaluation_id
    LIMIT %(limit)s
) s
JOIN evaluations v USING (evaluation_id)
LEFT JOIN events q ON q.month = v.month AND q.evaluation_id = v.evaluation_id AND q.attempt = s.attempt
                  AND q.sequence = 0
CROSS JOIN LATERAL (SELECT coalesce(q.event #>> '{data,reason}', 'submitted') AS reason) o
ORDER BY v.updated_at DESC, s.evaluation_id;

-- name: unreachable_evaluations
-- Returns retrying evaluations whose connection failed, of variants without a completed evaluation.
SELECT w.evaluation_id, w.attempt, w.variant, w.message
FROM (
    SELECT v.evaluation_id, v.attempt, v.variant, coalesce(e.event #>> '{data,error,message}', '') AS message
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
                 AND e.attempt = v.attempt AND e.sequence = v.sequence
    WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.evaluation_id <= %(published_to)s
      AND v.state = 'retrying' AND e.event #>> '{data,error,kind}' = %(kind)s
    ORDER BY v.evaluation_id
    LIMIT %(limit)s
) w
WHERE w.variant NOT IN (
    SELECT DISTINCT o.variant
    FROM evaluations o
    JOIN scorecards s USING (evaluation_id)
    WHERE s.batch_id = %(batch_id)s AND s.status = 'completed' AND o.variant IS NOT NULL
)
ORDER BY w.evaluation_id;

-- name: lock_batch
-- Locks the row of a batch.
SELECT FROM batches WHERE batch_id = %s FOR NO KEY UPDATE;

-- name: finish_batch
-- Finishes a batch that has no open evaluation, and records it.
WITH over AS (
    UPDATE batches b
    SET finished_at = now(), published_to = b.batch_id || '/',
        state = CASE WHEN b.state IN ('running', 'paused') THEN 'completed' ELSE b.state END
    WHERE b.batch_id = %(batch_id)s AND b.kind = 'submitted' AND b.finished_at IS NULL
      AND NOT EXISTS (SELECT FROM evaluations v WHERE v.batch_id = b.batch_id AND v.ended_at IS NULL)
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom)
SELECT batch_id, 'finished', 'coordinator' FROM over;

-- name: reopen_batch
-- Sets a batch running again, whatever its state, and records it.
WITH reopened AS (
    UPDATE batches
    SET finished_at = NULL, state = 'running', reason = '',
        deadline = CASE WHEN deadline > now() THEN deadline END
    WHERE batch_id = %(batch_id)s AND kind = 'submitted'
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom, reason)
SELECT batch_id, 'running', %(by)s, %(reason)s FROM reopened;

-- name: keep_batches_open
-- Reopens batches that were finished between an operator's request and the attempts it opened. A cancelled
-- batch stays cancelled: its coordinator ends what was opened.
UPDATE batches SET finished_at = NULL, state = CASE state WHEN 'cancelled' THEN state ELSE 'running' END
WHERE batch_id = ANY(%s) AND finished_at IS NOT NULL;

-- name: change_batch_spec
-- Replaces the spec of an unfinished batch and records it.
WITH changed AS (
    UPDATE batches SET spec = %(spec)s::json
    WHERE batch_id = %(batch_id)s AND kind = 'submitted' AND finished_at IS NULL
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom, reason)
SELECT batch_id, 'changed', %(by)s, %(reason)s FROM changed;
