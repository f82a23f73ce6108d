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

-- name: changed_ids
-- Keyset pagination: returns the next evaluations of a batch whose row was moved or that got an event since.
SELECT v.evaluation_id
FROM evaluations v
WHERE v.batch_id = %(batch)s AND v.evaluation_id > %(after)s
  AND (v.updated_at >= %(since)s OR EXISTS (
      SELECT FROM events e
      WHERE e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.recorded_at >= %(since)s
  ))
ORDER BY v.evaluation_id
LIMIT %(size)s;

-- name: moved_ids
-- Keyset pagination: returns the next evaluations of a batch whose row was moved since.
SELECT evaluation_id
FROM evaluations
WHERE batch_id = %(batch)s AND evaluation_id > %(after)s AND updated_at >= %(since)s
ORDER BY evaluation_id
LIMIT %(size)s;

-- name: live_batches
-- Returns the batches that have not finished, or finished since.
SELECT batch_id
FROM batches
WHERE finished_at IS NULL OR finished_at >= %s
ORDER BY accepted_at, batch_id;

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

-- name: plain_page
-- Returns the evaluations of a page whose events and rows can be compared at once, in one row each: all of one
-- attempt and applied without a gap, and none quarantined. Types and entry ids have no separators in them.
-- At most 100 events of at most 1 MiB: more would exceed what one value can hold.
SELECT v.evaluation_id, v.month, v.shard, v.attempt, v.sequence, v.state, v.owner, v.bridged, v.ended_at::text,
       s.batch_id, s.attempt, s.status, s.verdict, s.score, convert_to(s.scores::text, 'UTF8'), s.tokens,
       s.cost_usd, s.latency_ms, s.exit_code, s.error IS NOT NULL, s.bridged, s.ended_at::text,
       e.types, e.times, e.entry_ids, convert_to('[' || e.bodies || ']', 'UTF8')
FROM evaluations v
LEFT JOIN scorecards s ON s.evaluation_id = v.evaluation_id
CROSS JOIN LATERAL (
    SELECT string_agg(type, ' ') AS types, string_agg(occurred_at::text, ',') AS times,
           string_agg(entry_id, ' ') AS entry_ids, string_agg(event::text, ',') AS bodies,
           count(*) AS events, min(sequence) AS first, max(sequence) AS last,
           bool_and(attempt = 1 AND verdict = 'applied' AND octet_length(event::text) <= 1048576) AS plain
    FROM (
        SELECT attempt, sequence, type, verdict, occurred_at, entry_id, event
        FROM events
        WHERE month = %(month)b AND evaluation_id = v.evaluation_id
        ORDER BY attempt, sequence
        LIMIT 100
    ) logged
) e
WHERE v.evaluation_id = ANY(ARRAY(SELECT json_array_elements_text(%(ids)b::json)))
  AND v.batch_id = %(batch)b
  AND e.plain AND e.events < 100 AND e.first = 0 AND e.last = e.events - 1
  AND NOT EXISTS (SELECT FROM gap_bridges b WHERE b.evaluation_id = v.evaluation_id)
  AND NOT EXISTS (SELECT FROM quarantine q WHERE q.evaluation_id = v.evaluation_id);

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
