SELECT 1 FROM batches WHERE batch_id = %s;
