-- What a batch has at providers, for people; and how many of it wait to be sent there.
SELECT p.id, p.provider_id, p.state, cardinality(p.members), p.processing, p.succeeded, p.errored, p.canceled,
       p.expired, p.intended_at, p.submitted_at, p.polled_at, p.ended_at, p.note
FROM provider_batches p
WHERE p.batch_id = %s
ORDER BY p.intended_at, p.id;
