-- How long evaluations spent between two applied events of an attempt.
WITH steps AS (
    SELECT lag(e.type) OVER attempt AS before,
           e.type || CASE WHEN g.attempt IS NULL THEN '' ELSE ' (bridged)' END AS type,
           extract(epoch FROM e.occurred_at - lag(e.occurred_at) OVER attempt)::double precision AS seconds
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
    LEFT JOIN gap_bridges g ON g.evaluation_id = e.evaluation_id AND g.attempt = e.attempt
                           AND g.closing_sequence = e.sequence
    WHERE v.batch_id = %s AND e.verdict = 'applied'
    WINDOW attempt AS (PARTITION BY e.evaluation_id, e.attempt ORDER BY e.sequence)
)
SELECT before || ' → ' || type, count(*),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds),
       max(seconds)
FROM steps
WHERE before IS NOT NULL
GROUP BY before, type
ORDER BY count(*) DESC, 1;
