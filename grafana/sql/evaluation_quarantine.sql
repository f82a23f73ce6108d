SELECT quarantined_at AS "when", reason, left(detail, 300) AS detail, id
FROM quarantine
WHERE evaluation_id = ${evaluation:sqlstring}
ORDER BY quarantined_at DESC
LIMIT 50;
