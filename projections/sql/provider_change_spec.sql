WITH changed AS (
    UPDATE batches SET spec = %(spec)s::json
    WHERE batch_id = %(batch_id)s AND kind = 'submitted' AND finished_at IS NULL
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom, reason)
SELECT batch_id, 'changed', %(by)s, %(reason)s FROM changed;
