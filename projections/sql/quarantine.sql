-- Rows of `quarantine`: entries that are not valid events.

-- name: insert_quarantine
-- Idempotent insert of quarantined entries; returns the ids that were new.
INSERT INTO quarantine (id, evaluation_id, reason, detail, entry_id, body)
SELECT *
FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::bytea[])
    AS bad (id, evaluation_id, reason, detail, entry_id, body)
ORDER BY id
ON CONFLICT DO NOTHING
RETURNING id;

-- name: quarantine_list
-- Returns quarantined entries, newest first.
SELECT id, quarantined_at, reason, evaluation_id, detail, octet_length(body)
FROM quarantine
WHERE (%(evaluation)s::text IS NULL OR evaluation_id = %(evaluation)s)
  AND (%(reason)s::text IS NULL OR reason = %(reason)s)
ORDER BY quarantined_at DESC, id
LIMIT %(limit)s;

-- name: quarantine_by_prefix
-- Returns at most two entries whose id has a prefix, with their body.
SELECT id, quarantined_at, reason, evaluation_id, detail, octet_length(body), entry_id, substring(body FROM 1 FOR %(bytes)s)
FROM quarantine
WHERE starts_with(id, %(prefix)s)
ORDER BY id
LIMIT 2;
