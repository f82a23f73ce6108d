SELECT evaluation_id, batch_id, month, attempt, sequence, state, owner, bridged, head
FROM evaluations
WHERE evaluation_id = ANY(%b);
