SELECT coalesce(s.status, 'open'), coalesce(s.verdict, ''), count(*)
FROM evaluations v
LEFT JOIN scorecards s USING (evaluation_id)
WHERE v.batch_id = %s
GROUP BY 1, 2;
