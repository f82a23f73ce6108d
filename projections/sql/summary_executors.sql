-- Each executor's attempts, how they closed, and how long the executor had them.
WITH attempts AS (
    SELECT max(e.event #>> '{data,executor}') FILTER (WHERE e.type = 'provisioning') AS executor,
           max(e.type) FILTER (WHERE e.type IN ('completed', 'retrying', 'failed', 'timed_out')) AS closed_by,
           extract(epoch FROM max(e.occurred_at) - min(e.occurred_at) FILTER (WHERE e.type = 'provisioning')
           )::double precision AS seconds
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
    WHERE v.batch_id = %s AND e.verdict = 'applied'
    GROUP BY e.evaluation_id, e.attempt
)
SELECT executor, count(*),
       count(*) FILTER (WHERE closed_by = 'completed'),
       count(*) FILTER (WHERE closed_by = 'retrying'),
       count(*) FILTER (WHERE closed_by IN ('failed', 'timed_out')),
       count(*) FILTER (WHERE closed_by IS NULL),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
       max(seconds)
FROM attempts
WHERE executor IS NOT NULL
GROUP BY executor
ORDER BY 2 DESC, 1
LIMIT %s;
