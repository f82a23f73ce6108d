-- A rebuild folds the log into a schema of its own, beside the tables it then puts right.
DO $$
BEGIN
    EXECUTE format('GRANT CREATE ON DATABASE %I TO scoreline_migrator', current_database());
END
$$;

-- A state that no reader knows would stop whoever reads the row.
ALTER TABLE evaluations ADD CONSTRAINT evaluations_state_check CHECK (state IN (
    'unopened', 'queued', 'provisioning', 'running', 'responded',
    'retrying', 'failed', 'timed_out', 'completed', 'cancelled'
));
