SELECT batch_id, month, ensure_events_partition(month) FROM batches WHERE batch_id = ANY(%b);
