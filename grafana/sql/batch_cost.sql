SELECT cost_usd::double precision AS cost
FROM batch_status
WHERE batch_id = ${batch:sqlstring};
