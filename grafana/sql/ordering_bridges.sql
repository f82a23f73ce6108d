SELECT b.bridged_at AS bridged, b.evaluation_id AS evaluation, b.attempt, b.missing::text AS missing, v.batch_id AS batch
FROM (SELECT * FROM gap_bridges ORDER BY bridged_at DESC LIMIT 50) AS b
LEFT JOIN evaluations v USING (evaluation_id)
ORDER BY b.bridged_at DESC;
