-- What the log for good already holds of some evaluations, each within its month.
SELECT e.evaluation_id, e.attempt, e.sequence, e.event::text, e.verdict
FROM unnest(%b::date[], %b::text[]) AS wanted (month, evaluation_id)
JOIN events e ON e.month = wanted.month AND e.evaluation_id = wanted.evaluation_id;
