SELECT coalesce(error ->> 'kind', status), count(*)
FROM scorecards
WHERE batch_id = %s AND status IN ('failed', 'timed_out')
GROUP BY 1
ORDER BY 2 DESC, 1;
