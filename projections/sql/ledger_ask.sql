-- Only what is not over can be paused, resumed or stopped, and what was stopped stays so.
WITH asked AS (
    UPDATE batches
    SET state = %(state)s, reason = %(reason)s,
        next_usd = CASE WHEN %(state)s = 'running' THEN NULL ELSE next_usd END,
        next_tokens = CASE WHEN %(state)s = 'running' THEN NULL ELSE next_tokens END
    WHERE batch_id = %(batch_id)s AND kind = 'submitted' AND finished_at IS NULL
      AND state IN ('running', 'paused') AND state <> %(state)s
      AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s)
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom, reason)
SELECT batch_id, %(state)s, %(by)s, %(reason)s FROM asked;
