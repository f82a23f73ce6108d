SELECT attempt, closing_sequence AS "closed by", missing::text AS missing, bridged_at AS bridged
FROM gap_bridges
WHERE evaluation_id = ${evaluation:sqlstring}
ORDER BY attempt, closing_sequence;
