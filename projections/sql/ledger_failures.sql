-- The newest failures of a batch. One that closes at sequence 1 was given up by the coordinator itself.
SELECT s.error ->> 'kind', coalesce(s.error ->> 'message', ''), v.sequence > 1 OR o.reason = 'lost',
       o.reason NOT IN ('retry', 'lost')
FROM (
    -- By when they were stored: `ended_at` is of the clocks of executors.
    SELECT c.evaluation_id, c.attempt, c.error
    FROM scorecards c
    JOIN evaluations e USING (evaluation_id)
    WHERE c.batch_id = %(batch_id)s AND c.status = 'failed'
    ORDER BY e.updated_at DESC, c.evaluation_id
    LIMIT %(limit)s
) s
JOIN evaluations v USING (evaluation_id)
LEFT JOIN events q ON q.month = v.month AND q.evaluation_id = v.evaluation_id AND q.attempt = s.attempt
                  AND q.sequence = 0
CROSS JOIN LATERAL (SELECT coalesce(q.event #>> '{data,reason}', 'submitted') AS reason) o
ORDER BY v.updated_at DESC, s.evaluation_id;
