-- Each of a sample stands for as many as were passed over.
WITH scale AS (
    SELECT greatest(1, coalesce(total, 0) / 5000.0) AS each FROM batches WHERE batch_id = ${batch:sqlstring}
), spent AS (
    SELECT $__timeGroup(s.ended_at, $__interval) AS time, sum(s.cost_usd) * max(scale.each) AS cost
    FROM sampled(${batch:sqlstring}, 5000) AS v
    JOIN scorecards s USING (evaluation_id)
    CROSS JOIN scale
    WHERE s.ended_at <= $__timeTo()
    GROUP BY 1
)
SELECT time, (sum(cost) OVER (ORDER BY time))::double precision AS cost
FROM spent
ORDER BY time;
