-- Compare and set: a row that somebody else has moved since it was read stays as it is.
WITH locked AS (
    SELECT e.evaluation_id, e.attempt, e.sequence
    FROM evaluations e
    WHERE e.evaluation_id IN (SELECT s.evaluation_id FROM staged s WHERE s.from_attempt IS NOT NULL)
    ORDER BY e.evaluation_id
    FOR UPDATE
)
UPDATE evaluations e
SET attempt = s.attempt, sequence = s.sequence, state = s.state, owner = s.owner, bridged = s.bridged,
    head = s.head, ended_at = s.ended_at, updated_at = now()
FROM staged s
JOIN locked l ON l.evaluation_id = s.evaluation_id
WHERE e.evaluation_id = s.evaluation_id
  AND l.attempt = s.from_attempt AND l.sequence = s.from_sequence;
