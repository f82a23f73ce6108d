-- What dashboards look at of a batch that is too large to be read whole each time somebody looks.
CREATE FUNCTION sampled(batch text, most integer) RETURNS SETOF evaluations
LANGUAGE sql STABLE ROWS 5000 AS $$
    SELECT v.*
    FROM (
        SELECT b.batch_id, b.total, greatest(1, ceil(b.total::numeric / most))::bigint AS step
        FROM batches b
        WHERE b.batch_id = batch AND b.total > 0
    ) AS one
    -- Ids count from 1, so that no index is needed to find evenly spaced ones. The second term varies the
    -- distance: with an even one, a sample of two targets in turn could consist of one of them.
    CROSS JOIN LATERAL (
        SELECT n + (n / one.step * 7919) % one.step AS number
        FROM generate_series(1, one.total, one.step) AS n
    ) AS spread
    JOIN evaluations v
        ON v.evaluation_id = one.batch_id || '.' || lpad(spread.number::text, greatest(8, length(spread.number::text)), '0')
    UNION ALL
    -- Ids of external batches may be anything.
    (
        SELECT v.*
        FROM evaluations v
        WHERE v.batch_id = batch AND EXISTS (SELECT FROM batches b WHERE b.batch_id = batch AND b.total IS NULL)
        ORDER BY v.evaluation_id
        LIMIT most
    )
$$;
COMMENT ON FUNCTION sampled IS 'At most so many evaluations of a batch: all of them if they are no more, else spread over the whole of it.';
