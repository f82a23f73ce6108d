-- Whoever ends a batch waits for what is being opened in it, and the other way round.
SELECT FROM batches
WHERE batch_id IN (SELECT v.batch_id FROM evaluations v WHERE v.evaluation_id = ANY(%s))
ORDER BY batch_id
FOR NO KEY UPDATE;
