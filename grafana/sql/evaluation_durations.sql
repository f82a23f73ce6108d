WITH steps AS (
    SELECT e.attempt, e.sequence, e.type,
           lead(e.occurred_at) OVER (ORDER BY e.attempt, e.sequence) - e.occurred_at AS lasted
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
    WHERE v.evaluation_id = ${evaluation:sqlstring} AND e.verdict = 'applied' AND e.type <> 'scored'
)
SELECT attempt || ': ' || type AS state, extract(epoch FROM lasted)::double precision * 1000 AS lasted
FROM steps
WHERE lasted IS NOT NULL
ORDER BY attempt, sequence
LIMIT 100;
