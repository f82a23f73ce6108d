-- The first evaluations whose answer did not pass, in the order of the dataset.
SELECT evaluation_id
FROM scorecards
WHERE batch_id = %(batch)s AND status = 'completed' AND verdict = 'failed'
ORDER BY evaluation_id
LIMIT %(limit)s;
