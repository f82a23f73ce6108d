DELETE FROM batch_progress p
WHERE p.batch_id = %s
  AND NOT EXISTS (SELECT FROM scoreline_rebuild.evaluations r WHERE r.shard = p.shard);
