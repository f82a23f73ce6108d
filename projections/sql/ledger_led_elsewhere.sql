SELECT batch_id
FROM batches
WHERE batch_id = ANY(%(batch_ids)s::text[]) AND kind = 'submitted' AND finished_at IS NULL AND run_id <> %(run_id)s;
