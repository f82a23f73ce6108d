INSERT INTO evaluations
    (evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, head, ended_at)
SELECT evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, head, ended_at
FROM staged
WHERE from_attempt IS NULL
ORDER BY evaluation_id
ON CONFLICT (evaluation_id) DO NOTHING;
