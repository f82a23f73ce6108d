-- Two batches side by side, evaluation by evaluation: the n-th variants of both lists belong together.
-- A case that is in a batch more than once is met by its like, in order.
-- An outcome is passed, failed, dead_letter or cancelled; null where the evaluation has not ended.
WITH pairing AS (
    SELECT 'left' AS side, %(left)s::text AS batch_id, variant, place
    FROM unnest(%(left_variants)s::integer[]) WITH ORDINALITY AS l (variant, place)
    UNION ALL
    SELECT 'right', %(right)s::text, variant, place
    FROM unnest(%(right_variants)s::integer[]) WITH ORDINALITY AS r (variant, place)
), found AS (
    SELECT p.side, p.place, n.case_id, coalesce(v.repetition, 1) AS repetition, v.evaluation_id,
           CASE WHEN s.verdict IS NOT NULL THEN s.verdict
                WHEN s.status IN ('failed', 'timed_out') THEN 'dead_letter'
                ELSE s.status END AS outcome,
           s.score,
           row_number() OVER (PARTITION BY p.side, p.place, n.case_id, coalesce(v.repetition, 1)
                              ORDER BY v.evaluation_id) AS nth
    FROM pairing p
    JOIN evaluations v ON v.batch_id = p.batch_id COLLATE "C" AND coalesce(v.variant, 0) = p.variant
    LEFT JOIN scorecards s ON s.evaluation_id = v.evaluation_id
    CROSS JOIN LATERAL (
        SELECT coalesce(v.case_id, (
            SELECT coalesce(q.event #>> '{data,case,id}', q.event #>> '{data,case_id}')
            FROM events q
            WHERE q.month = v.month AND q.evaluation_id = v.evaluation_id AND q.attempt = 1 AND q.sequence = 0
        ), v.evaluation_id) AS case_id
    ) n
)
SELECT case_id, place::integer, repetition,
       b.evaluation_id, b.outcome, b.score, a.evaluation_id, a.outcome, a.score
FROM (SELECT * FROM found WHERE side = 'left') b
FULL JOIN (SELECT * FROM found WHERE side = 'right') a USING (case_id, place, repetition, nth)
ORDER BY coalesce(b.evaluation_id, a.evaluation_id);
