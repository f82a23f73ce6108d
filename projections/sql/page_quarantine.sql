SELECT id, evaluation_id, reason, detail, entry_id, body
FROM quarantine
WHERE evaluation_id = ANY(%b);
