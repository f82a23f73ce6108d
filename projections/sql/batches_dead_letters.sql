-- Evaluations that were given up, the newest first; the closing event names the limit that passed.
SELECT s.evaluation_id,
       coalesce(v.case_id, q.event #>> '{data,case,id}', q.event #>> '{data,case_id}', s.evaluation_id),
       coalesce(v.variant, 0), coalesce(v.repetition, 1), s.attempt, s.status, s.error::text,
       c.event ->> 'data', s.ended_at
FROM scorecards s
JOIN evaluations v USING (evaluation_id)
LEFT JOIN events q ON v.case_id IS NULL AND q.month = v.month AND q.evaluation_id = v.evaluation_id
                  AND q.attempt = 1 AND q.sequence = 0 AND q.type = 'queued'
LEFT JOIN events c ON c.month = v.month AND c.evaluation_id = v.evaluation_id AND c.attempt = v.attempt
                  AND c.sequence = v.sequence
WHERE s.batch_id = %(batch)s AND s.status IN ('failed', 'timed_out')
ORDER BY s.ended_at DESC, s.evaluation_id
LIMIT %(limit)s;
