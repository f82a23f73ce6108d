-- Two workers may want a month's partition at once. The second waits for the first's lock, but its
-- cached "no such table" outlives the wait: only CREATE itself looks again. Rights stay as they were.

CREATE OR REPLACE FUNCTION ensure_events_partition(wanted date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    first_day date := date_trunc('month', wanted)::date;
    partition text := 'events_' || to_char(first_day, 'YYYY_MM');
BEGIN
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('scoreline.events_partition'));
    EXECUTE format(
        'CREATE TABLE IF NOT EXISTS %I PARTITION OF events FOR VALUES FROM (%L) TO (%L)',
        partition, first_day, (first_day + interval '1 month')::date
    );
END
$$;
