SELECT coalesce(v.variant, 0), count(*), count(s.evaluation_id),
       count(*) FILTER (WHERE s.status = 'completed'), count(*) FILTER (WHERE s.verdict = 'passed'),
       count(*) FILTER (WHERE s.status IN ('failed', 'timed_out')), avg(s.score)
FROM evaluations v
LEFT JOIN scorecards s USING (evaluation_id)
WHERE v.batch_id = %s
GROUP BY 1
ORDER BY 1;
