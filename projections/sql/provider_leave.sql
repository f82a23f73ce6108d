-- Whose next attempt is open waits for the chunk no more; one that asks again waits for another.
WITH said AS (
    SELECT v.evaluation_id, v.batch_id, v.asked_in IS NOT NULL AS asked, opened.asks
    FROM unnest(%(evaluation_ids)s::text[], %(asks)s::boolean[]) AS opened (evaluation_id, asks)
    JOIN evaluations v ON v.evaluation_id = opened.evaluation_id
    WHERE v.asked_in IS NOT NULL OR opened.asks
), moved AS (
    UPDATE evaluations v SET asked_in = CASE WHEN said.asks THEN '' END
    FROM said
    WHERE v.evaluation_id = said.evaluation_id
)
UPDATE batches b SET told_apart = b.told_apart + counted.difference
FROM (SELECT batch_id, sum(asked::integer - asks::integer) AS difference FROM said GROUP BY batch_id) counted
WHERE b.batch_id = counted.batch_id;
