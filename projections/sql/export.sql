-- The rows of `batch export`.

-- name: export_counts
-- Counts the evaluations of a batch by status and verdict.
SELECT coalesce(s.status, 'open'), coalesce(s.verdict, ''), count(*)
FROM evaluations v
LEFT JOIN scorecards s USING (evaluation_id)
WHERE v.batch_id = %s
GROUP BY 1, 2;

-- name: export_rows
-- Streams every evaluation in dataset order along an index, without a sort. The output is the newest recorded
-- answer; an old event has it in `completed`, a cached one in `queued`.
SELECT v.evaluation_id,
       coalesce(v.case_id, q.event #>> '{data,case,id}', q.event #>> '{data,case_id}', v.evaluation_id),
       coalesce(v.variant, 0), coalesce(v.repetition, 1), coalesce(s.status, v.state), s.verdict, s.score,
       s.scores::text, o.output,
       (q.event #> '{data,case,input}')::text, (q.event #> '{data,case,expected}')::text,
       s.error::text, c.event ->> 'data', v.attempt, s.tokens, s.cost_usd, s.latency_ms, s.exit_code,
       v.bridged, s.ended_at, (q.event #> '{data,case,metadata}')::text, g.stored::text,
       coalesce((q.event #>> '{data,answer,cached}')::boolean, false),
       (u.event #>> '{data,usage,input_tokens}')::bigint, (u.event #>> '{data,usage,output_tokens}')::bigint
FROM evaluations v
LEFT JOIN scorecards s ON s.evaluation_id = v.evaluation_id
LEFT JOIN events q ON q.month = v.month AND q.evaluation_id = v.evaluation_id AND q.attempt = 1
                  AND q.sequence = 0 AND q.type = 'queued'
LEFT JOIN events c ON s.status IN ('timed_out', 'cancelled') AND c.month = v.month
                  AND c.evaluation_id = v.evaluation_id AND c.attempt = v.attempt AND c.sequence = v.sequence
LEFT JOIN LATERAL (
    SELECT a.output
    FROM events e
    CROSS JOIN LATERAL (
        SELECT coalesce(e.event #>> '{data,output}', e.event #>> '{data,answer,output}') AS output
    ) a
    WHERE e.month = v.month AND e.evaluation_id = v.evaluation_id AND e.verdict = 'applied'
      AND e.type IN ('responded', 'completed', 'queued') AND a.output IS NOT NULL
    ORDER BY array_position(ARRAY['responded', 'completed', 'queued'], e.type), e.attempt DESC, e.sequence DESC
    LIMIT 1
) o ON true
LEFT JOIN events u ON s.status = 'completed' AND u.month = v.month AND u.evaluation_id = v.evaluation_id
                  AND u.attempt = v.attempt AND u.sequence = v.sequence
-- Values that earlier evaluations of the serial group stored for the prompt: the newest answer of each.
LEFT JOIN LATERAL (
    SELECT json_object_agg(r.name, a.output) AS stored
    FROM serial_links l
    CROSS JOIN LATERAL (
        SELECT pair ->> 0 AS evaluation_id, pair ->> 1 AS name FROM json_array_elements(l.recalls) AS pair
    ) r
    CROSS JOIN LATERAL (
        SELECT e.event #>> '{data,output}' AS output
        FROM events e
        WHERE e.month = v.month AND e.evaluation_id = r.evaluation_id AND e.verdict = 'applied'
          AND e.type = 'responded'
        ORDER BY e.attempt DESC, e.sequence DESC
        LIMIT 1
    ) a
    WHERE l.evaluation_id = v.evaluation_id AND r.name IS NOT NULL
) g ON true
WHERE v.batch_id = %(batch)s AND (%(only)s::text[] IS NULL OR v.evaluation_id = ANY(%(only)s))
ORDER BY v.batch_id, v.evaluation_id;
