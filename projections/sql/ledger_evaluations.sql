-- The coordinator's ledger: publication windows, attempts and serial groups.

-- name: next_window
-- Returns the next unpublished openings of a batch; those of serial groups are marked as waiting.
SELECT v.evaluation_id, convert_to(e.event::text, 'UTF8'), l.evaluation_id IS NOT NULL
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.attempt = 1 AND e.sequence = 0
LEFT JOIN serial_links l ON l.evaluation_id = v.evaluation_id
WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.evaluation_id > %(after)s AND v.month = %(month)s
ORDER BY v.evaluation_id
LIMIT %(limit)s;

-- name: open_window
-- Compare-and-set on `published_to`: publishes a window of a running batch and stores the epochs it is
-- published in.
WITH moved AS (
    UPDATE batches SET published_to = %(last_id)s
    WHERE batch_id = %(batch_id)s AND published_to = %(after)s AND state = 'running'
    RETURNING batch_id
), by_provider AS (
    -- Not published to executors: they wait for a provider batch.
    UPDATE evaluations v SET asked_in = ''
    FROM moved
    WHERE v.batch_id = moved.batch_id AND v.evaluation_id = ANY(%(by_provider)s)
)
INSERT INTO batch_windows (batch_id, last_id, evaluations, epochs)
SELECT batch_id, %(last_id)s, %(size)s, %(epochs)s FROM moved;

-- name: unmoved_evaluations
-- Keyset pagination over published evaluations that have not ended nor moved for a while, except those whose
-- owner is live and within its time, and queued ones unless asked for.
SELECT v.evaluation_id, v.batch_id, v.month, v.attempt, v.sequence, v.state, v.owner, v.bridged, v.head,
       epoch_of(v), v.published
FROM evaluations v
WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL
  AND v.evaluation_id > %(after)s AND v.evaluation_id <= %(published_to)s
  AND v.asked_in IS NULL
  AND v.updated_at < now() - %(unchanged_for)s::interval
  AND (%(queued)s OR v.state <> 'queued')
  AND v.state <> 'retrying'
  AND NOT (v.owner IS NOT NULL AND v.owner = ANY(%(live)s) AND v.updated_at > now() - %(hung_after)s::interval)
ORDER BY v.evaluation_id
LIMIT %(limit)s;

-- name: due_retries
-- Returns evaluations whose next attempt is due.
SELECT v.evaluation_id, v.batch_id, v.month, v.attempt, v.sequence, v.state, v.owner, v.bridged, v.head,
       epoch_of(v), v.published
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
             AND e.attempt = v.attempt AND e.sequence = v.sequence
-- A time in another notation, stored by an earlier release, must not fail the query: such a retry is due.
CROSS JOIN LATERAL (
    SELECT CASE WHEN e.event #>> '{data,retry_at}' ~ '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$'
           THEN (e.event #>> '{data,retry_at}')::timestamptz END AS due_at
) retry
WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.evaluation_id <= %(published_to)s
  AND v.state = 'retrying'
  -- Both times are of the executor's clock: their difference is the delay, counted from when it was stored.
  AND (retry.due_at IS NULL OR
       v.updated_at + greatest(least(retry.due_at - e.occurred_at, interval '1 day'), interval '0') <= %(now)s)
ORDER BY v.evaluation_id
LIMIT %(limit)s;

-- name: evaluation_states
-- Returns the rows of some evaluations with their publication state.
SELECT v.evaluation_id, v.batch_id, v.month, v.attempt, v.sequence, v.state, v.owner, v.bridged, v.head,
       epoch_of(v), v.published
FROM evaluations v
WHERE v.evaluation_id = ANY(%s)
ORDER BY v.evaluation_id;

-- name: attempt_openings
-- Returns what the newest attempts were opened with: sequence 0, and what the coordinator appended after it.
SELECT v.evaluation_id, convert_to(e.event::text, 'UTF8')
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.attempt = v.attempt
WHERE v.evaluation_id = ANY(%b) AND (e.sequence = 0 OR (e.sequence = 1 AND e.type = 'failed'))
ORDER BY v.evaluation_id, e.sequence;

-- name: lock_batches
-- Locks the batches of some evaluations, so that no batch is finished while an attempt is opened in it.
SELECT FROM batches
WHERE batch_id IN (SELECT v.batch_id FROM evaluations v WHERE v.evaluation_id = ANY(%s))
ORDER BY batch_id
FOR NO KEY UPDATE;

-- name: lock_evaluations
-- Locks some evaluations and returns their rows with their publication state.
SELECT v.evaluation_id, v.batch_id, v.month, v.attempt, v.sequence, v.state, v.owner, v.bridged, v.head,
       epoch_of(v), v.published
FROM evaluations v
WHERE v.evaluation_id = ANY(%s)
ORDER BY v.evaluation_id
FOR UPDATE;

-- name: set_epochs
-- Sets epoch and publication state of the evaluations whose attempts were opened.
UPDATE evaluations v
SET epoch = opened.epoch, published = opened.published
FROM unnest(%b::text[], %b::text[], %b::boolean[]) AS opened (evaluation_id, epoch, published)
WHERE v.evaluation_id = opened.evaluation_id;

-- name: unpublished_endings
-- Returns evaluations that the coordinator ended and whose ending may not be in their stream.
SELECT evaluation_id FROM evaluations WHERE NOT published ORDER BY evaluation_id LIMIT %s;

-- name: mark_published
-- Marks endings as published.
UPDATE evaluations SET published = true WHERE evaluation_id = ANY(%s) AND NOT published;

-- name: open_evaluation_ids
-- Keyset pagination over the open evaluations of a batch.
SELECT evaluation_id
FROM evaluations
WHERE batch_id = %(batch_id)s AND ended_at IS NULL AND evaluation_id > %(after)s
ORDER BY evaluation_id
LIMIT %(limit)s;

-- name: dead_letter_ids
-- Keyset pagination over the dead letters of a batch.
SELECT evaluation_id
FROM scorecards
WHERE batch_id = %(batch_id)s AND status IN ('failed', 'timed_out') AND evaluation_id > %(after)s
ORDER BY evaluation_id
LIMIT %(limit)s;

-- name: due_serial_links
-- Returns evaluations of serial groups whose predecessor has ended and that are not published.
SELECT l.evaluation_id, l.follows, l.recalls::text
FROM batches b
JOIN evaluations v ON v.batch_id = b.batch_id AND v.evaluation_id <= b.published_to
JOIN serial_links l ON l.evaluation_id = v.evaluation_id
JOIN evaluations before ON before.evaluation_id = l.follows
WHERE b.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.epoch = '' AND before.ended_at IS NOT NULL
  -- Most batches have no groups, and each cycle runs this query.
  AND EXISTS (SELECT FROM serial_links any_link WHERE any_link.batch_id = %(batch_id)s)
ORDER BY l.evaluation_id
LIMIT %(limit)s;

-- name: serial_links_of
-- Returns the serial-group links of some evaluations.
SELECT evaluation_id, follows, recalls::text FROM serial_links WHERE evaluation_id = ANY(%s);

-- name: publish_evaluations
-- Sets the epochs in which some open, unpublished evaluations are published.
UPDATE evaluations v
SET epoch = (%(epochs)s::text[])[v.shard + 1]
WHERE v.evaluation_id = ANY(%(evaluation_ids)s) AND v.epoch = '' AND v.ended_at IS NULL
RETURNING v.evaluation_id;
