-- Evaluations that may not start before an earlier one of their group has ended.
SELECT count(*)
FROM serial_links l
JOIN evaluations f ON f.evaluation_id = l.follows AND f.ended_at IS NULL
WHERE l.batch_id = %s;
