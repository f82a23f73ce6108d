-- What has not ended, by state, of all that executors may know of: at most a window, however large the batch.
SELECT v.state, count(*), min(v.updated_at),
       (array_agg(v.evaluation_id ORDER BY v.updated_at, v.evaluation_id))[1],
       min(r.event #>> '{data,retry_at}')
FROM batches b
JOIN evaluations v ON v.batch_id = b.batch_id AND v.ended_at IS NULL
                  AND (b.kind = 'external' OR v.evaluation_id <= b.published_to)
                  AND v.asked_in IS NULL
LEFT JOIN events r ON r.month = v.month AND r.evaluation_id = v.evaluation_id AND r.attempt = v.attempt
                  AND r.sequence = v.sequence AND r.type = 'retrying'
WHERE b.batch_id = %s
GROUP BY v.state
ORDER BY count(*) DESC, v.state;
