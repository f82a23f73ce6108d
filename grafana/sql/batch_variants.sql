-- A variant is a prompt with a target: the targets of the first prompt, then those of the second.
WITH shape AS (
    SELECT spec, is_scored(b) AS is_scored, greatest(1, json_array_length(spec -> 'targets')) AS targets
    FROM batches b
    WHERE batch_id = ${batch:sqlstring}
), summed AS (
    SELECT coalesce(variant, 0) AS variant, count(status) AS ended,
           count(*) FILTER (WHERE verdict = 'passed') AS passed,
           avg(score) AS score, avg(latency_ms) AS latency, avg(cost_usd)::double precision AS "cost of one"
    FROM sampled(${batch:sqlstring}, 2000)
    GROUP BY 1
)
-- People may name a target by its URL, and a URL may have a password in it.
SELECT regexp_replace(coalesce(spec #>> ARRAY['targets', (variant % targets)::text, 'label'], 'variant ' || variant),
                      '://[^/@]*@', '://***@') AS target,
       left(spec #>> ARRAY['prompts', (variant / targets)::text], 60) AS prompt,
       ended, pass_rate(passed, ended, is_scored) AS "pass rate", score, latency, "cost of one"
FROM summed
CROSS JOIN shape
ORDER BY variant;
