UPDATE batches
SET unrecorded_usd = greatest(unrecorded_usd, %(usd)s), unrecorded_tokens = greatest(unrecorded_tokens, %(tokens)s)
WHERE batch_id = %(batch_id)s AND kind = 'submitted';
