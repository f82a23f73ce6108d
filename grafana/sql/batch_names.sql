SELECT batch_id FROM batches ORDER BY accepted_at DESC LIMIT 200;
