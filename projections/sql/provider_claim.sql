-- Whoever comes second finds it claimed later than it thought.
UPDATE provider_batches SET claimed_at = %(now)s
WHERE id = %(id)s AND state = 'intended' AND claimed_at = %(claimed_at)s;
