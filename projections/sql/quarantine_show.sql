SELECT id, quarantined_at, reason, evaluation_id, detail, octet_length(body), entry_id, substring(body FROM 1 FOR %(bytes)s)
FROM quarantine
WHERE starts_with(id, %(prefix)s)
ORDER BY id
LIMIT 2;
