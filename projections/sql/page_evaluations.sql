SELECT evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, ended_at
FROM evaluations
WHERE evaluation_id = ANY(%b);
