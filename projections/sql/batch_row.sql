SELECT b.month, date_trunc('month', b.accepted_at AT TIME ZONE 'UTC')::date,
       (SELECT count(*) FROM evaluations v WHERE v.batch_id = b.batch_id)
FROM batches b
WHERE b.batch_id = %s;
