-- An event of the log is a change of state; `scored` is none.
SELECT e.occurred_at AS time, 'attempt ' || e.attempt AS attempt, e.type AS state
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.evaluation_id = ${evaluation:sqlstring} AND e.verdict = 'applied' AND e.type <> 'scored'
ORDER BY e.occurred_at, e.sequence
LIMIT 1000;
