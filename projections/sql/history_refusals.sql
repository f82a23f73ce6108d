-- A conflicting body is an event, and shown as one: it comes whole. Of anything else the beginning will do.
SELECT count(*) OVER (), id, reason, detail, entry_id, octet_length(body),
       CASE WHEN reason = 'conflict' THEN body ELSE substring(body FROM 1 FOR %(bytes)s) END,
       quarantined_at
FROM quarantine
WHERE evaluation_id = %(evaluation)s
ORDER BY quarantined_at, id
LIMIT %(limit)s;
