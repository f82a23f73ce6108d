UPDATE provider_batches
SET state = 'submitted', provider_id = %(provider_id)s, submitted_at = %(now)s, note = ''
WHERE id = %(id)s AND state = 'intended';
