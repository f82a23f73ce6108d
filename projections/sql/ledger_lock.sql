SELECT v.evaluation_id, v.batch_id, v.month, v.attempt, v.sequence, v.state, v.owner, v.bridged, v.head,
       epoch_of(v), v.published
FROM evaluations v
WHERE v.evaluation_id = ANY(%s)
ORDER BY v.evaluation_id
FOR UPDATE;
