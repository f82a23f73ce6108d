-- The newest failures of a batch. One that closes at sequence 1 was given up by the coordinator itself.
SELECT s.error ->> 'kind', coalesce(s.error ->> 'message', ''), v.sequence > 1 OR o.reason = 'lost',
       o.reason NOT IN ('retry', 'lost')
FROM (
    SELECT evaluation_id, attempt, error, ended_at
    FROM scorecards
    WHERE batch_id = %(batch_id)s AND status = 'failed'
    ORDER BY ended_at DESC, evaluation_id
    LIMIT %(limit)s
) s
JOIN evaluations v USING (evaluation_id)
LEFT JOIN events q ON q.month = v.month AND q.evaluation_id = v.evaluation_id AND q.attempt = s.attempt
                  AND q.sequence = 0
CROSS JOIN LATERAL (SELECT coalesce(q.event #>> '{data,reason}', 'submitted') AS reason) o
ORDER BY s.ended_at DESC, s.evaluation_id;
