SELECT v.evaluation_id AS evaluation, v.case_id AS "case", v.attempt AS attempts, v.status,
       v.verdict, v.latency_ms AS latency, v.owner AS worker
FROM sampled(${batch:sqlstring}, 2000) AS v
WHERE v.status IS NOT NULL
ORDER BY v.latency_ms DESC, v.evaluation_id
LIMIT 25;
