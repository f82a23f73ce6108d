-- Stale, late and rejected events: another worker may have kept them already.
INSERT INTO events (month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, event)
SELECT month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, convert_from(event, 'UTF8')::json
FROM unnest(
    %b::date[], %b::text[], %b::integer[], %b::integer[], %b::text[],
    %b::text[], %b::timestamptz[], %b::text[], %b::bytea[]
) AS side (month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, event)
ORDER BY month, evaluation_id, attempt, sequence
ON CONFLICT DO NOTHING
RETURNING evaluation_id, attempt, sequence;
