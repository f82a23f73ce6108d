-- Compare and set: a row that somebody else has moved since it was read stays as it is.
WITH moved AS (
    SELECT *
    FROM unnest(
        %b::text[], %b::integer[], %b::integer[], %b::integer[], %b::integer[],
        %b::text[], %b::text[], %b::boolean[], %b::text[], %b::timestamptz[]
    ) AS m (evaluation_id, from_attempt, from_sequence, attempt, sequence, state, owner, bridged, head, ended_at)
), locked AS (
    SELECT e.evaluation_id, e.attempt, e.sequence
    FROM evaluations e
    WHERE e.evaluation_id IN (SELECT m.evaluation_id FROM moved m)
    ORDER BY e.evaluation_id
    FOR UPDATE
)
UPDATE evaluations e
SET attempt = m.attempt, sequence = m.sequence, state = m.state, owner = m.owner, bridged = m.bridged,
    head = m.head, ended_at = m.ended_at, updated_at = now()
FROM moved m
JOIN locked l ON l.evaluation_id = m.evaluation_id
WHERE e.evaluation_id = m.evaluation_id
  AND l.attempt = m.from_attempt AND l.sequence = m.from_sequence
RETURNING e.evaluation_id;
