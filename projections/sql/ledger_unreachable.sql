-- Evaluations that wait because no connection could be made, of variants of which none is completed.
SELECT w.evaluation_id, w.attempt, w.variant, w.message
FROM (
    SELECT v.evaluation_id, v.attempt, v.variant, coalesce(e.event #>> '{data,error,message}', '') AS message
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
                 AND e.attempt = v.attempt AND e.sequence = v.sequence
    WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.evaluation_id <= %(published_to)s
      AND v.state = 'retrying' AND e.event #>> '{data,error,kind}' = %(kind)s
    ORDER BY v.evaluation_id
    LIMIT %(limit)s
) w
WHERE w.variant NOT IN (
    SELECT DISTINCT o.variant
    FROM evaluations o
    JOIN scorecards s USING (evaluation_id)
    WHERE s.batch_id = %(batch_id)s AND s.status = 'completed' AND o.variant IS NOT NULL
)
ORDER BY w.evaluation_id;
