-- Those of a chunk that still wait for its answers, each with what its newest attempt was opened with.
SELECT v.evaluation_id, convert_to(e.event::text, 'UTF8')
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.attempt = v.attempt AND e.sequence = 0
WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.evaluation_id > %(after)s AND v.asked_in = %(id)s
ORDER BY v.evaluation_id
LIMIT %(limit)s;
