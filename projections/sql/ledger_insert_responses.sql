INSERT INTO responses (cache_key, month, evaluation_id)
SELECT cache_key, %(month)s, evaluation_id
FROM unnest(%(cache_keys)s::text[], %(evaluation_ids)s::text[]) AS asked (cache_key, evaluation_id)
ON CONFLICT DO NOTHING;
