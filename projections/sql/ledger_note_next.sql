UPDATE batches
SET next_usd = %(usd)s, next_tokens = %(tokens)s
WHERE batch_id = %(batch_id)s AND kind = 'submitted' AND finished_at IS NULL;
