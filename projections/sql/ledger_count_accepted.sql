WITH told AS (
    INSERT INTO batch_events (batch_id, type, by_whom) VALUES (%(batch_id)s, 'accepted', %(by)s)
)
UPDATE batches SET total = %(total)s WHERE batch_id = %(batch_id)s;
