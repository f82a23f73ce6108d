WITH over AS (
    UPDATE batches b
    SET finished_at = now(), published_to = b.batch_id || '/',
        state = CASE WHEN b.state IN ('running', 'paused') THEN 'completed' ELSE b.state END
    WHERE b.batch_id = %(batch_id)s AND b.kind = 'submitted' AND b.finished_at IS NULL
      AND NOT EXISTS (SELECT FROM evaluations v WHERE v.batch_id = b.batch_id AND v.ended_at IS NULL)
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom)
SELECT batch_id, 'finished', 'coordinator' FROM over;
