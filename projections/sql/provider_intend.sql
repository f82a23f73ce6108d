INSERT INTO provider_batches
    (id, batch_id, target, members, attempts, bytes, digest, intended_at, claimed_at, processing,
     reserved_cost, reserved_tokens)
VALUES (%(id)s, %(batch_id)s, %(target)s, %(members)s, %(attempts)s, %(bytes)s, %(digest)s, %(intended_at)s,
        %(claimed_at)s, cardinality(%(members)s::integer[]), %(reserved_cost)s, %(reserved_tokens)s);
