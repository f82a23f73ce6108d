-- Each of a sample stands for as many as were passed over.
WITH scale AS (
    SELECT greatest(1, ceil(coalesce(total, 0) / 2000.0)) AS each FROM batches WHERE batch_id = ${batch:sqlstring}
), spent AS (
    SELECT $__timeGroup(v.ended_at, $__interval) AS time, sum(v.cost_usd) * max(scale.each) AS cost
    FROM sampled(${batch:sqlstring}, 2000) AS v
    CROSS JOIN scale
    WHERE v.ended_at <= $__timeTo()
    GROUP BY 1
)
SELECT time, (sum(cost) OVER (ORDER BY time))::double precision AS cost
FROM spent
ORDER BY time;
