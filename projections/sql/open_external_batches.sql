-- Events of a batch nobody submitted make a batch of kind `external`.
INSERT INTO batches (batch_id, kind, month)
SELECT batch_id, 'external', date_trunc('month', now() AT TIME ZONE 'UTC')::date
FROM unnest(%b::text[]) AS unknown (batch_id)
ORDER BY batch_id
ON CONFLICT DO NOTHING;
