UPDATE evaluations v
SET asked_in = %(id)s
FROM unnest(%(evaluation_ids)s::text[], %(attempts)s::integer[]) AS joining (evaluation_id, attempt)
WHERE v.evaluation_id = joining.evaluation_id AND v.attempt = joining.attempt
  AND v.asked_in = '' AND v.ended_at IS NULL;
