WITH allowed AS (
    UPDATE batches
    SET max_cost_usd = %(max_cost_usd)s, max_tokens = %(max_tokens)s
    WHERE batch_id = %(batch_id)s AND kind = 'submitted'
    RETURNING batch_id
)
INSERT INTO batch_events (batch_id, type, by_whom, reason)
SELECT batch_id, 'budget', %(by)s, %(reason)s FROM allowed;
