-- The newest run wins: coordinators and executors of the one before no longer serve the batch.
WITH assigned AS (
    UPDATE batches
    SET run_id = %(run_id)s
    WHERE batch_id = %(batch_id)s AND kind = 'submitted' AND run_id <> %(run_id)s
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom, reason)
SELECT batch_id, 'assigned', %(by)s, %(reason)s FROM assigned;
