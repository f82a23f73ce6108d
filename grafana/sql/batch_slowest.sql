SELECT s.evaluation_id AS evaluation, v.case_id AS "case", v.attempt AS attempts, s.status,
       s.verdict, s.latency_ms AS latency, v.owner AS worker
FROM sampled(${batch:sqlstring}, 5000) AS v
JOIN scorecards s USING (evaluation_id)
ORDER BY s.latency_ms DESC, s.evaluation_id
LIMIT 25;
