SELECT b.evaluation_id, b.attempt, b.missing, e.type
FROM evaluations v
JOIN gap_bridges b ON b.evaluation_id = v.evaluation_id
JOIN events e ON e.month = v.month AND e.evaluation_id = b.evaluation_id
             AND e.attempt = b.attempt AND e.sequence = b.closing_sequence
WHERE v.batch_id = %s
ORDER BY b.bridged_at, b.evaluation_id
LIMIT %s;
