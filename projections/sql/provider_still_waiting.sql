SELECT evaluation_id
FROM evaluations
WHERE evaluation_id = ANY(%(evaluation_ids)s) AND ended_at IS NULL AND asked_in = %(id)s;
