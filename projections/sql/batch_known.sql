SELECT evaluation_id FROM evaluations WHERE batch_id = %s;
