SELECT FROM batches WHERE batch_id = %s FOR NO KEY UPDATE;
