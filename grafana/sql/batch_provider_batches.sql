SELECT coalesce(provider_id, id) AS "provider batch", state, cardinality(members) AS requests, succeeded, errored,
       expired, canceled, intended_at AS intended, submitted_at AS submitted,
       extract(epoch FROM coalesce(ended_at, now()) - submitted_at)::double precision AS took, note
FROM provider_batches
WHERE batch_id = ${batch:sqlstring}
ORDER BY intended_at DESC
LIMIT 50;
