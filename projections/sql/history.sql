-- All that the tables hold of one evaluation.

-- name: history_row
-- Returns the row of an evaluation.
SELECT batch_id, month, attempt, sequence, state, owner, ended_at
FROM evaluations
WHERE evaluation_id = %s;

-- name: history_events
-- Returns the events of an evaluation by attempt and sequence.
SELECT event::text, verdict, entry_id, recorded_at
FROM events
WHERE month = %s AND evaluation_id = %s
ORDER BY attempt, sequence;

-- name: history_bridges
-- Returns the bridged gaps of an evaluation.
SELECT attempt, closing_sequence, missing, bridged_at
FROM gap_bridges
WHERE evaluation_id = %s
ORDER BY attempt, closing_sequence;

-- name: history_quarantined
-- Returns the quarantined entries of an evaluation. A conflicting body is an event and comes whole, of any
-- other the beginning.
SELECT count(*) OVER (), id, reason, detail, entry_id, octet_length(body),
       CASE WHEN reason = 'conflict' THEN body ELSE substring(body FROM 1 FOR %(bytes)s) END,
       quarantined_at
FROM quarantine
WHERE evaluation_id = %(evaluation)s
ORDER BY quarantined_at, id
LIMIT %(limit)s;
