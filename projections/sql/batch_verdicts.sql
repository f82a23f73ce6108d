SELECT e.verdict, count(*)
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.batch_id = %s
GROUP BY e.verdict
ORDER BY e.verdict;
