-- Dead letters by reason: the kind of the error and its message, in which numbers and quotations may differ.
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
