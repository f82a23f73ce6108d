WITH scale AS (
    SELECT greatest(1, coalesce(total, 0) / 5000.0) AS each FROM batches WHERE batch_id = ${batch:sqlstring}
)
SELECT $__timeGroup(s.ended_at, $__interval) AS time,
       ((count(*) FILTER (WHERE s.verdict = 'passed')) * max(scale.each))::double precision AS passed,
       ((count(*) FILTER (WHERE s.verdict = 'failed')) * max(scale.each))::double precision AS "not passed",
       ((count(*) FILTER (WHERE s.status <> 'completed')) * max(scale.each))::double precision AS "without a verdict"
FROM sampled(${batch:sqlstring}, 5000) AS v
JOIN scorecards s USING (evaluation_id)
CROSS JOIN scale
WHERE $__timeFilter(s.ended_at)
GROUP BY 1
ORDER BY 1;
