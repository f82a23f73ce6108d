SELECT pass_rate(s.passed, s.total - s.pending, is_scored(b)) AS "pass rate"
FROM batches b
JOIN batch_status s USING (batch_id)
WHERE b.batch_id = ${batch:sqlstring};
