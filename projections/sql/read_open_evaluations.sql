-- The sweep's pages: what has not ended and has not moved for a while, in order of id.
SELECT evaluation_id
FROM evaluations
WHERE ended_at IS NULL AND evaluation_id > %b AND updated_at < now() - make_interval(secs => %b)
ORDER BY evaluation_id
LIMIT %b;
