SELECT quarantined_at AS "when", evaluation_id AS evaluation, reason, left(detail, 300) AS detail
FROM quarantine
ORDER BY quarantined_at DESC, id
LIMIT 50;
