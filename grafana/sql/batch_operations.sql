SELECT at, type AS what, by_whom AS "by", reason
FROM batch_events
WHERE batch_id = ${batch:sqlstring}
ORDER BY number DESC
LIMIT 50;
