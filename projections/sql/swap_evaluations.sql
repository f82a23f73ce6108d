-- Only rows that differ are written: on a table that was right, nothing happens.
INSERT INTO evaluations AS v
    (evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, ended_at, head)
SELECT evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, ended_at, head
FROM scoreline_rebuild.evaluations
ORDER BY evaluation_id
ON CONFLICT (evaluation_id) DO UPDATE
SET batch_id = excluded.batch_id, month = excluded.month, shard = excluded.shard, attempt = excluded.attempt,
    sequence = excluded.sequence, state = excluded.state, owner = excluded.owner, bridged = excluded.bridged,
    ended_at = excluded.ended_at, updated_at = now()
WHERE (v.batch_id, v.month, v.shard, v.attempt, v.sequence, v.state, v.owner, v.bridged, v.ended_at)
    IS DISTINCT FROM (excluded.batch_id, excluded.month, excluded.shard, excluded.attempt, excluded.sequence,
                      excluded.state, excluded.owner, excluded.bridged, excluded.ended_at);
