SELECT batch_id FROM batches ORDER BY accepted_at, batch_id;
