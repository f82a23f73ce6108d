SELECT ensure_events_partition(date_trunc('month', %s::timestamptz AT TIME ZONE 'UTC')::date);
