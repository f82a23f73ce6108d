SELECT evaluation_id
FROM scorecards
WHERE batch_id = %(batch_id)s AND status IN ('failed', 'timed_out') AND evaluation_id > %(after)s
ORDER BY evaluation_id
LIMIT %(limit)s;
