SELECT count(DISTINCT e.event #>> '{data,executor}') AS workers
FROM sampled(${batch:sqlstring}, 500) AS v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.sequence = 1
WHERE e.type = 'provisioning';
