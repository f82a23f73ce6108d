INSERT INTO gap_bridges (evaluation_id, attempt, closing_sequence, missing)
SELECT evaluation_id, attempt, closing_sequence, missing::int4multirange
FROM unnest(%b::text[], %b::integer[], %b::integer[], %b::text[])
    AS bridge (evaluation_id, attempt, closing_sequence, missing)
ORDER BY evaluation_id, attempt, closing_sequence
ON CONFLICT DO NOTHING;
