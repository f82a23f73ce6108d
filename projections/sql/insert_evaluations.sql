INSERT INTO evaluations
    (evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, head, ended_at)
SELECT *
FROM unnest(
    %b::text[], %b::text[], %b::date[], %b::smallint[], %b::integer[], %b::integer[],
    %b::text[], %b::text[], %b::boolean[], %b::text[], %b::timestamptz[]
) AS fresh (evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, head, ended_at)
ORDER BY evaluation_id
ON CONFLICT (evaluation_id) DO NOTHING
RETURNING evaluation_id;
