-- What has not ended, how far it came, and what is in quarantine of it.
SELECT v.evaluation_id, v.attempt, v.sequence, v.state,
       (SELECT string_agg(DISTINCT q.reason, ', ' ORDER BY q.reason)
        FROM quarantine q WHERE q.evaluation_id = v.evaluation_id)
FROM evaluations v
WHERE v.batch_id = %s AND v.ended_at IS NULL
ORDER BY v.evaluation_id
LIMIT %s;
