-- Whoever comes second finds the batch published further than it thought.
WITH moved AS (
    UPDATE batches SET published_to = %(last_id)s
    WHERE batch_id = %(batch_id)s AND published_to = %(after)s AND state = 'running'
    RETURNING batch_id
)
INSERT INTO batch_windows (batch_id, last_id, evaluations, epochs)
SELECT batch_id, %(last_id)s, %(size)s, %(epochs)s FROM moved;
