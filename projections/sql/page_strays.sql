-- Evaluations whose scorecard or events say that they are of this batch, and whose row does not.
-- Materialized, so that an event is opened only where it has no row at all: there are hardly any.
WITH rowless AS MATERIALIZED (
    SELECT DISTINCT e.month, e.evaluation_id
    FROM events e
    WHERE e.month = %(month)s
      AND NOT EXISTS (SELECT FROM evaluations v WHERE v.evaluation_id = e.evaluation_id)
)
SELECT r.evaluation_id
FROM rowless r
WHERE EXISTS (
    SELECT FROM events e
    WHERE e.month = r.month AND e.evaluation_id = r.evaluation_id AND e.event ->> 'batch_id' = %(batch)s
)
UNION
SELECT s.evaluation_id
FROM scorecards s
LEFT JOIN evaluations v ON v.evaluation_id = s.evaluation_id
WHERE s.batch_id = %(batch)s AND v.batch_id IS DISTINCT FROM s.batch_id
ORDER BY 1;
