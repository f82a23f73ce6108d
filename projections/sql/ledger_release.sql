UPDATE evaluations v
SET epoch = (%(epochs)s::text[])[v.shard + 1]
WHERE v.evaluation_id = ANY(%(evaluation_ids)s) AND v.epoch = '' AND v.ended_at IS NULL
RETURNING v.evaluation_id;
