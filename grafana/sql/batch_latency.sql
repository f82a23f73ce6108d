SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v.latency_ms) AS p50,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY v.latency_ms) AS p95,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY v.latency_ms) AS p99
FROM sampled(${batch:sqlstring}, 2000) AS v
WHERE v.status = 'completed'
HAVING count(*) > 0;
