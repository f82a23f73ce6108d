SELECT (total - pending)::double precision / nullif(total, 0) AS ended
FROM batch_status
WHERE batch_id = ${batch:sqlstring};
