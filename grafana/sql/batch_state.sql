SELECT CASE WHEN finished_at IS NULL OR state <> 'running' THEN state ELSE 'completed' END AS state
FROM batches
WHERE batch_id = ${batch:sqlstring};
