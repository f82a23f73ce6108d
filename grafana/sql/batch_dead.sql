SELECT s.evaluation_id AS evaluation, v.case_id AS "case", s.status, coalesce(s.error ->> 'kind', s.status) AS kind,
       left(s.error ->> 'message', 300) AS reason, s.attempt AS attempts, s.ended_at AS ended
FROM scorecards s
JOIN evaluations v USING (evaluation_id)
WHERE s.batch_id = ${batch:sqlstring} AND s.status IN ('failed', 'timed_out')
ORDER BY s.ended_at DESC, s.evaluation_id
LIMIT 50;
