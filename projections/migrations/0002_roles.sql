-- Who may do what. The roles carry privileges only: a deployment grants them to its login users.
-- Nobody gets UPDATE or DELETE on the facts, so the log can only grow.

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['scoreline_migrator', 'scoreline_storage', 'scoreline_coordinator', 'scoreline_reader'] LOOP
        -- Where an administrator has made them, the migrator needs no right to make roles.
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = wanted);
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        EXCEPTION
            -- Roles belong to the whole server: another database's migration may be here first.
            WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END LOOP;
END
$$;

GRANT SELECT ON ALL TABLES IN SCHEMA public TO scoreline_reader, scoreline_storage, scoreline_coordinator;

GRANT INSERT ON batches, events, gap_bridges, quarantine TO scoreline_storage;
GRANT INSERT, UPDATE ON evaluations, batch_progress TO scoreline_storage;
GRANT INSERT, UPDATE, DELETE ON scorecards TO scoreline_storage;
GRANT EXECUTE ON FUNCTION ensure_events_partition(date) TO scoreline_storage;

GRANT INSERT ON events TO scoreline_coordinator;
GRANT INSERT, UPDATE ON batches, evaluations, batch_progress TO scoreline_coordinator;
GRANT INSERT, UPDATE, DELETE ON scorecards TO scoreline_coordinator;
GRANT EXECUTE ON FUNCTION ensure_events_partition(date) TO scoreline_coordinator;

GRANT ALL ON ALL TABLES IN SCHEMA public TO scoreline_migrator;
REVOKE UPDATE, DELETE, TRUNCATE ON events, gap_bridges, quarantine FROM scoreline_migrator;
