SELECT id, quarantined_at, reason, evaluation_id, detail, octet_length(body)
FROM quarantine
WHERE (%(evaluation)s::text IS NULL OR evaluation_id = %(evaluation)s)
  AND (%(reason)s::text IS NULL OR reason = %(reason)s)
ORDER BY quarantined_at DESC, id
LIMIT %(limit)s;
