-- What dashboards look at of a batch that is too large to be read whole each time somebody looks.
CREATE FUNCTION sampled(batch text, most integer)
RETURNS TABLE (
    evaluation_id text, month date, case_id text, variant smallint, attempt integer, owner text,
    status text, verdict text, score double precision, cost_usd numeric, latency_ms double precision, ended_at timestamptz
)
-- Some thousand rows of millions: whoever plans for more reads all of them.
LANGUAGE sql STABLE ROWS 2000 SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    SELECT v.evaluation_id, v.month, v.case_id, v.variant, v.attempt, v.owner,
           s.status, s.verdict, s.score, s.cost_usd, s.latency_ms, s.ended_at
    FROM (
        SELECT b.batch_id || '.' || lpad(number::text, greatest(8, length(number::text)), '0') AS evaluation_id
        FROM batches b
        CROSS JOIN LATERAL (SELECT greatest(1, ceil(b.total::numeric / most))::bigint AS step) AS one
        CROSS JOIN LATERAL generate_series(1, b.total, one.step) AS n
        -- Ids count from 1, so no index is needed to find some all over the batch. The distance varies: were
        -- it even, the sample of two targets in turn could be all of one.
        CROSS JOIN LATERAL (SELECT n + (n / one.step * 7919) % one.step AS number) AS place
        WHERE b.batch_id = batch
        UNION ALL
        -- Ids of external batches may be anything.
        (
            SELECT o.evaluation_id
            FROM evaluations o
            WHERE o.batch_id = batch AND (SELECT b.total IS NULL FROM batches b WHERE b.batch_id = batch)
            ORDER BY o.evaluation_id
            LIMIT most
        )
    ) AS chosen
    JOIN evaluations v ON v.evaluation_id = chosen.evaluation_id
    LEFT JOIN scorecards s ON s.evaluation_id = v.evaluation_id
$$;
COMMENT ON FUNCTION sampled IS 'At most so many evaluations of a batch, with what they came to: all of them if they are no more, else some from all over it.';
