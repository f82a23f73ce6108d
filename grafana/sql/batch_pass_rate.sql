SELECT passed::double precision / nullif(total - pending - cancelled, 0) AS "pass rate"
FROM batch_status
WHERE batch_id = ${batch:sqlstring};
