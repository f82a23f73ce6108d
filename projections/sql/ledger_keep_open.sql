-- A batch may have been ended between the operator's word and the attempts that follow from it.
UPDATE batches SET finished_at = NULL, state = 'running' WHERE batch_id = ANY(%s) AND finished_at IS NOT NULL;
