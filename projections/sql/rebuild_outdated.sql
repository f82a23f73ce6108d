-- Evaluations that got events since they were folded: the log only grows, so their number tells.
WITH counted AS (
    SELECT v.evaluation_id, (
        SELECT count(*) FROM events e WHERE e.month = v.month AND e.evaluation_id = v.evaluation_id
    ) AS events
    FROM evaluations v
    WHERE v.batch_id = %s
)
SELECT c.evaluation_id
FROM counted c
LEFT JOIN scoreline_rebuild.evaluations r ON r.evaluation_id = c.evaluation_id
WHERE r.events IS DISTINCT FROM c.events
ORDER BY 1;
