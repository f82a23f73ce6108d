-- What the newest attempts were opened with: sequence 0, and what the coordinator itself wrote after it.
SELECT v.evaluation_id, convert_to(e.event::text, 'UTF8')
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.attempt = v.attempt
WHERE v.evaluation_id = ANY(%b) AND (e.sequence = 0 OR (e.sequence = 1 AND e.type = 'failed'))
ORDER BY v.evaluation_id, e.sequence;
