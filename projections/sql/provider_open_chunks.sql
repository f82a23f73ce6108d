SELECT id, batch_id, target, members, attempts, bytes, digest, intended_at, claimed_at, state, provider_id,
       submitted_at, called_off, note, reserved_cost, reserved_tokens
FROM provider_batches
WHERE state IN ('intended', 'submitted', 'ended')
ORDER BY intended_at, id;
