SELECT batch_id, month, attempt, sequence, state, owner, ended_at
FROM evaluations
WHERE evaluation_id = %s;
