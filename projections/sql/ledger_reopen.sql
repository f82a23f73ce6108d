WITH reopened AS (
    UPDATE batches
    SET finished_at = NULL, state = 'running', reason = '',
        deadline = CASE WHEN deadline > now() THEN deadline END
    WHERE batch_id = %(batch_id)s AND kind = 'submitted'
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom, reason)
SELECT batch_id, 'running', %(by)s, %(reason)s FROM reopened;
