SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s.latency_ms) AS p50,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY s.latency_ms) AS p95,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY s.latency_ms) AS p99
FROM sampled(${batch:sqlstring}, 5000) AS v
JOIN scorecards s USING (evaluation_id)
WHERE s.status = 'completed'
HAVING count(*) > 0;
