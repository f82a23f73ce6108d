SELECT count(*)
FROM provider_batches p
JOIN batches b USING (batch_id)
WHERE p.state = 'submitted' AND b.run_id = %(run_id)s;
