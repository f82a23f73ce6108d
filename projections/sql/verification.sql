-- Keyset pages of a batch for verification and rebuild.

-- name: page_batch
-- Returns the month of a batch, the month of its acceptance and its number of evaluations.
SELECT b.month, date_trunc('month', b.accepted_at AT TIME ZONE 'UTC')::date,
       (SELECT count(*) FROM evaluations v WHERE v.batch_id = b.batch_id)
FROM batches b
WHERE b.batch_id = %s;

-- name: page_ids
-- Keyset pagination: returns the next evaluation ids of a batch.
SELECT evaluation_id
FROM evaluations
WHERE batch_id = %s AND evaluation_id > %s
ORDER BY evaluation_id
LIMIT %s;

-- name: page_strays
-- Returns evaluations whose scorecard or events name this batch and whose row does not. Materialized, so that
-- an event body is read only where there is no row at all.
WITH rowless AS MATERIALIZED (
    SELECT DISTINCT e.month, e.evaluation_id
    FROM events e
    WHERE e.month = %(month)s
      AND NOT EXISTS (SELECT FROM evaluations v WHERE v.evaluation_id = e.evaluation_id)
)
SELECT r.evaluation_id
FROM rowless r
WHERE EXISTS (
    SELECT FROM events e
    WHERE e.month = r.month AND e.evaluation_id = r.evaluation_id AND e.event ->> 'batch_id' = %(batch)s
)
UNION
SELECT s.evaluation_id
FROM scorecards s
LEFT JOIN evaluations v ON v.evaluation_id = s.evaluation_id
WHERE s.batch_id = %(batch)s AND v.batch_id IS DISTINCT FROM s.batch_id
ORDER BY 1;

-- name: page_evaluations
-- Returns the rows of a page's evaluations.
SELECT evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, ended_at
FROM evaluations
WHERE evaluation_id = ANY(%b);

-- name: page_events
-- Returns the events of a page's evaluations by attempt and sequence.
SELECT month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id,
       convert_to(event::text, 'UTF8')
FROM events
WHERE month = %b AND evaluation_id = ANY(%b)
ORDER BY evaluation_id, attempt, sequence;

-- name: page_bridges
-- Returns the bridged gaps of a page's evaluations.
SELECT evaluation_id, attempt, closing_sequence, missing
FROM gap_bridges
WHERE evaluation_id = ANY(%b);

-- name: page_scorecards
-- Returns the scorecards of a page's evaluations.
SELECT evaluation_id, batch_id, attempt, status, verdict, score, scores::text, tokens, cost_usd,
       latency_ms, exit_code, error::text, bridged, ended_at
FROM scorecards
WHERE evaluation_id = ANY(%b);

-- name: page_quarantine
-- Returns the quarantined entries of a page's evaluations.
SELECT id, evaluation_id, reason, detail, entry_id, body
FROM quarantine
WHERE evaluation_id = ANY(%b);
