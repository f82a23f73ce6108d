-- Rows of `events` and `gap_bridges`: the permanent event log.

-- name: copy_events
-- COPY target for applied events (binary).
COPY events (month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, event)
FROM STDIN (FORMAT binary)

-- name: insert_side_events
-- Idempotent insert of stale, late and rejected events; returns the keys that were new.
INSERT INTO events (month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, event)
SELECT month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, convert_from(event, 'UTF8')::json
FROM unnest(
    %b::date[], %b::text[], %b::integer[], %b::integer[], %b::text[],
    %b::text[], %b::timestamptz[], %b::text[], %b::bytea[]
) AS side (month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, event)
ORDER BY month, evaluation_id, attempt, sequence
ON CONFLICT DO NOTHING
RETURNING evaluation_id, attempt, sequence;

-- name: insert_bridges
-- Idempotent insert of bridged gaps.
INSERT INTO gap_bridges (evaluation_id, attempt, closing_sequence, missing)
SELECT evaluation_id, attempt, closing_sequence, missing::int4multirange
FROM unnest(%b::text[], %b::integer[], %b::integer[], %b::text[])
    AS bridge (evaluation_id, attempt, closing_sequence, missing)
ORDER BY evaluation_id, attempt, closing_sequence
ON CONFLICT DO NOTHING;

-- name: read_stored_events
-- Returns all stored events of some evaluations, each within its month's partition.
SELECT e.evaluation_id, e.attempt, e.sequence, e.event::text, e.verdict
FROM unnest(%b::date[], %b::text[]) AS wanted (month, evaluation_id)
JOIN events e ON e.month = wanted.month AND e.evaluation_id = wanted.evaluation_id;
