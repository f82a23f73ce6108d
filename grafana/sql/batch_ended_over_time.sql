WITH scale AS (
    SELECT greatest(1, ceil(coalesce(total, 0) / 2000.0)) AS each FROM batches WHERE batch_id = ${batch:sqlstring}
)
SELECT $__timeGroup(v.ended_at, $__interval) AS time,
       ((count(*) FILTER (WHERE v.verdict = 'passed')) * max(scale.each))::double precision AS passed,
       ((count(*) FILTER (WHERE v.verdict = 'failed')) * max(scale.each))::double precision AS "not passed",
       ((count(*) FILTER (WHERE v.status <> 'completed')) * max(scale.each))::double precision AS "without a verdict"
FROM sampled(${batch:sqlstring}, 2000) AS v
CROSS JOIN scale
WHERE $__timeFilter(v.ended_at)
GROUP BY 1
ORDER BY 1;
