INSERT INTO quarantine (id, evaluation_id, reason, detail, entry_id, body)
SELECT *
FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::bytea[])
    AS bad (id, evaluation_id, reason, detail, entry_id, body)
ORDER BY id
ON CONFLICT DO NOTHING
RETURNING id;
