-- A batch may have been ended between the operator's word and the attempts that follow from it.
-- One that was cancelled stays so: whoever looks after it will end what was opened.
UPDATE batches SET finished_at = NULL, state = CASE state WHEN 'cancelled' THEN state ELSE 'running' END
WHERE batch_id = ANY(%s) AND finished_at IS NOT NULL;
