-- What each evaluator scored, of each variant; one that only scores passes and fails nothing.
SELECT coalesce(v.variant, 0), one ->> 'evaluator', count(*),
       count(*) FILTER (WHERE (one ->> 'passed')::boolean), count(one ->> 'passed'),
       avg((one ->> 'score')::double precision)
FROM evaluations v
JOIN scorecards s USING (evaluation_id)
CROSS JOIN LATERAL json_array_elements(s.scores) AS one
WHERE v.batch_id = %s
GROUP BY 1, 2
ORDER BY 1, 2;
