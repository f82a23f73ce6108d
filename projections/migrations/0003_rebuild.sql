-- A rebuild folds the log into a schema of its own, beside the tables it then puts right.
DO $$
BEGIN
    EXECUTE format('GRANT CREATE ON DATABASE %I TO scoreline_migrator', current_database());
END
$$;
