SELECT attempt, closing_sequence, missing, bridged_at
FROM gap_bridges
WHERE evaluation_id = %s
ORDER BY attempt, closing_sequence;
