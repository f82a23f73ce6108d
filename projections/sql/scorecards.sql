-- Rows of `scorecards`, and what they add up to.

-- name: upsert_scorecards
-- Idempotent upsert of the staged scorecards, except of evaluations that lost the compare-and-set.
INSERT INTO scorecards
    (evaluation_id, batch_id, attempt, status, verdict, score, scores, tokens, cost_usd,
     latency_ms, exit_code, error, bridged, ended_at)
SELECT evaluation_id, batch_id, attempt, status, verdict, score, scores, tokens, cost_usd,
       latency_ms, exit_code, error, bridged, ended_at
FROM staged
WHERE status IS NOT NULL AND evaluation_id <> ALL(%b::text[])
ORDER BY evaluation_id
ON CONFLICT (evaluation_id) DO UPDATE
SET attempt = excluded.attempt, status = excluded.status, verdict = excluded.verdict, score = excluded.score,
    scores = excluded.scores, tokens = excluded.tokens, cost_usd = excluded.cost_usd,
    latency_ms = excluded.latency_ms, exit_code = excluded.exit_code, error = excluded.error,
    bridged = excluded.bridged, ended_at = excluded.ended_at;

-- name: delete_scorecards
-- Deletes the scorecards of reopened evaluations.
DELETE FROM scorecards WHERE evaluation_id = ANY(%b);

-- name: evaluator_results
-- Returns count, passes and mean score of each evaluator and variant of a batch.
SELECT coalesce(v.variant, 0), one ->> 'evaluator', count(*),
       count(*) FILTER (WHERE (one ->> 'passed')::boolean), count(one ->> 'passed'),
       avg((one ->> 'score')::double precision)
FROM evaluations v
JOIN scorecards s USING (evaluation_id)
CROSS JOIN LATERAL json_array_elements(s.scores) AS one
WHERE v.batch_id = %s
GROUP BY 1, 2
ORDER BY 1, 2;

-- name: failed_evaluations
-- Returns the first completed evaluations of a batch whose verdict is `failed`, in dataset order.
SELECT evaluation_id
FROM scorecards
WHERE batch_id = %(batch)s AND status = 'completed' AND verdict = 'failed'
ORDER BY evaluation_id
LIMIT %(limit)s;

-- name: dead_letter_groups
-- Groups the dead letters of a batch by error kind and message, ignoring numbers and quotations.
SELECT g.kind, g.number, g.example, s.status, s.error::text, c.event ->> 'data'
FROM (
    SELECT coalesce(error ->> 'kind', status) AS kind, count(*) AS number, min(evaluation_id) AS example
    FROM scorecards
    WHERE batch_id = %s AND status IN ('failed', 'timed_out')
    GROUP BY 1, regexp_replace(left(split_part(error ->> 'message', E'\n', 1), 200), '[0-9]+|''[^'']*''|"[^"]*"', '…', 'g')
) g
JOIN scorecards s ON s.evaluation_id = g.example
JOIN evaluations v ON v.evaluation_id = g.example
LEFT JOIN events c ON c.month = v.month AND c.evaluation_id = v.evaluation_id AND c.attempt = v.attempt
                  AND c.sequence = v.sequence
ORDER BY g.number DESC, g.example;

-- name: dead_letters
-- Returns the dead letters of a batch, newest first, with their closing event.
SELECT s.evaluation_id,
       coalesce(v.case_id, q.event #>> '{data,case,id}', q.event #>> '{data,case_id}', s.evaluation_id),
       coalesce(v.variant, 0), coalesce(v.repetition, 1), s.attempt, s.status, s.error::text,
       c.event ->> 'data', s.ended_at
FROM scorecards s
JOIN evaluations v USING (evaluation_id)
LEFT JOIN events q ON v.case_id IS NULL AND q.month = v.month AND q.evaluation_id = v.evaluation_id
                  AND q.attempt = 1 AND q.sequence = 0 AND q.type = 'queued'
LEFT JOIN events c ON c.month = v.month AND c.evaluation_id = v.evaluation_id AND c.attempt = v.attempt
                  AND c.sequence = v.sequence
WHERE s.batch_id = %(batch)s AND s.status IN ('failed', 'timed_out')
ORDER BY s.ended_at DESC, s.evaluation_id
LIMIT %(limit)s;

-- name: dead_letter_kinds
-- Counts the dead letters of a batch by error kind.
SELECT coalesce(error ->> 'kind', status), count(*)
FROM scorecards
WHERE batch_id = %s AND status IN ('failed', 'timed_out')
GROUP BY 1
ORDER BY 2 DESC, 1;

-- name: compare_rows
-- Pairs the evaluations of two batches: the n-th variants of both lists correspond, and of a case that occurs
-- repeatedly the n-th occurrences. `outcome` is passed, failed, dead_letter or cancelled; null while open.
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
