-- Whoever comes second finds the batch published further than it thought.
WITH moved AS (
    UPDATE batches SET published_to = %(last_id)s
    WHERE batch_id = %(batch_id)s AND published_to = %(after)s AND state = 'running'
    RETURNING batch_id
), asked AS (
    -- Of these executors are not told: they wait for a provider batch.
    UPDATE evaluations v SET asked_in = ''
    FROM moved
    WHERE v.batch_id = moved.batch_id AND v.evaluation_id = ANY(%(asked)s)
)
INSERT INTO batch_windows (batch_id, last_id, evaluations, epochs)
SELECT batch_id, %(last_id)s, %(size)s, %(epochs)s FROM moved;
