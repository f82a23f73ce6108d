-- The newest answer to each question, wherever in the log it is.
SELECT DISTINCT ON (r.cache_key) r.cache_key, convert_to(e.event::text, 'UTF8')
FROM responses r
JOIN events e ON e.month = r.month AND e.evaluation_id = r.evaluation_id AND e.type = 'responded'
WHERE r.cache_key = ANY(%b)
ORDER BY r.cache_key, e.recorded_at DESC, e.evaluation_id DESC, e.attempt DESC;
