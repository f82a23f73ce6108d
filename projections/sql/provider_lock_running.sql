-- Whoever pauses or stops a batch waits for what is being intended in it, and the other way round.
SELECT FROM batches
WHERE batch_id = %(batch_id)s AND state = 'running' AND finished_at IS NULL
FOR NO KEY UPDATE;
