SELECT evaluation_id, attempt, closing_sequence, missing
FROM gap_bridges
WHERE evaluation_id = ANY(%b);
