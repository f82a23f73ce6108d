SELECT coalesce(error ->> 'kind', status) AS kind, count(*) AS evaluations, max(ended_at) AS latest
FROM (
    SELECT error, status, ended_at
    FROM scorecards
    WHERE batch_id = ${batch:sqlstring} AND status IN ('failed', 'timed_out')
    ORDER BY ended_at DESC, evaluation_id
    LIMIT 5000
) AS newest
GROUP BY 1
ORDER BY 2 DESC, 1;
