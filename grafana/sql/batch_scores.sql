WITH scored AS (
    SELECT v.score
    FROM sampled(${batch:sqlstring}, 2000) AS v
    WHERE v.score IS NOT NULL
), span AS (
    SELECT least(0, min(score)) AS low, greatest(1, max(score)) AS high FROM scored
), bins AS (
    SELECT bin, low + (high - low) * (bin - 1) / 10 AS begins, low + (high - low) * bin / 10 AS ends
    FROM span, generate_series(1, 10) AS bin
    WHERE low IS NOT NULL
)
SELECT round(begins::numeric, 2) || ' to ' || round(ends::numeric, 2) AS score, count(scored.score) AS evaluations
FROM bins
CROSS JOIN span
LEFT JOIN scored ON least(10, width_bucket(scored.score, low, high, 10)) = bin
GROUP BY bin, begins, ends
ORDER BY bin;
