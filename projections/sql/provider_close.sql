-- Those that still wait for an abandoned one are to be asked in another.
WITH closed AS (
    UPDATE provider_batches SET state = %(state)s, closed_at = %(now)s
    WHERE id = %(id)s AND state IN ('intended', 'submitted', 'ended')
    RETURNING id, batch_id
)
UPDATE evaluations v SET asked_in = ''
FROM closed
WHERE v.batch_id = closed.batch_id AND v.ended_at IS NULL AND v.asked_in = closed.id;
