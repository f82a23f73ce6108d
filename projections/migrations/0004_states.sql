-- A state that no reader knows would stop whoever reads the row.
ALTER TABLE evaluations ADD CONSTRAINT evaluations_state_check CHECK (state IN (
    'unopened', 'queued', 'provisioning', 'running', 'responded',
    'retrying', 'failed', 'timed_out', 'completed', 'cancelled'
));
