-- The openings that nobody has been told of; those of serial groups wait for their turn.
SELECT v.evaluation_id, convert_to(e.event::text, 'UTF8'), l.evaluation_id IS NOT NULL
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.attempt = 1 AND e.sequence = 0
LEFT JOIN serial_links l ON l.evaluation_id = v.evaluation_id
WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.evaluation_id > %(after)s AND v.month = %(month)s
ORDER BY v.evaluation_id
LIMIT %(limit)s;
