INSERT INTO batches (batch_id, kind, month, name, project, dataset, tags, priority, spec, accepted_at, deadline,
                     max_cost_usd, max_tokens, run_id)
VALUES (%(batch_id)s, 'submitted', date_trunc('month', %(now)s::timestamptz AT TIME ZONE 'UTC')::date, %(name)s,
        %(project)s, %(dataset)s, %(tags)s, %(priority)s, %(spec)s::json, %(now)s,
        %(now)s::timestamptz + %(max_duration)s::interval,
        %(max_cost_usd)s, %(max_tokens)s, %(run_id)s)
ON CONFLICT DO NOTHING
RETURNING month;
