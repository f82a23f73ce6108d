-- Executors are told of them after all; no window counts them.
WITH leaving AS (
    SELECT v.evaluation_id
    FROM evaluations v
    WHERE v.batch_id = %(batch_id)s AND v.ended_at IS NULL AND v.asked_in = ''
    ORDER BY v.evaluation_id
    LIMIT %(limit)s
    FOR UPDATE
), left_now AS (
    UPDATE evaluations v SET asked_in = NULL, epoch = (%(epochs)s::text[])[v.shard + 1]
    FROM leaving
    WHERE v.evaluation_id = leaving.evaluation_id
    RETURNING v.evaluation_id
), counted AS (
    UPDATE batches SET told_apart = told_apart + (SELECT count(*) FROM left_now)
    WHERE batch_id = %(batch_id)s
)
SELECT evaluation_id FROM left_now;
