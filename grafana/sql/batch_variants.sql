-- A variant is a prompt with a target: the targets of the first prompt, then those of the second.
WITH shape AS (
    SELECT spec, greatest(1, json_array_length(spec -> 'targets')) AS targets
    FROM batches
    WHERE batch_id = ${batch:sqlstring}
)
-- People may name a target by its URL, and a URL may have a password in it.
SELECT regexp_replace(coalesce(shape.spec #>> ARRAY['targets', (v.variant % shape.targets)::text, 'label'], 'variant ' || v.variant),
                      '://[^/@]*@', '://***@') AS target,
       left(shape.spec #>> ARRAY['prompts', (v.variant / shape.targets)::text], 60) AS prompt,
       count(s.evaluation_id) AS ended,
       (count(*) FILTER (WHERE s.verdict = 'passed'))::double precision
           / nullif(count(*) FILTER (WHERE s.status <> 'cancelled'), 0) AS "pass rate",
       avg(s.score) AS score, avg(s.latency_ms) AS latency, avg(s.cost_usd)::double precision AS "cost of one"
FROM sampled(${batch:sqlstring}, 5000) AS v
LEFT JOIN scorecards s USING (evaluation_id)
CROSS JOIN shape
GROUP BY 1, 2, v.variant
ORDER BY v.variant;
