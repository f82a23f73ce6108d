-- How many wait for a provider, and how many of them are in no provider batch yet.
SELECT count(*), count(*) FILTER (WHERE asked_in = '')
FROM evaluations
WHERE batch_id = %s AND ended_at IS NULL AND asked_in IS NOT NULL;
