-- The progress of a batch in one place, for lists, status, the coordinator and metrics.

CREATE FUNCTION progress_of(one batches) RETURNS TABLE (
    total bigint, completed bigint, passed bigint, failed bigint, timed_out bigint, cancelled bigint, retried bigint,
    bridged bigint, scored bigint, score_sum numeric, tokens bigint, cost_usd numeric
) LANGUAGE sql STABLE AS $$
    SELECT coalesce(one.total, sum(p.total), 0)::bigint, coalesce(sum(p.completed), 0)::bigint,
           coalesce(sum(p.passed), 0)::bigint, coalesce(sum(p.failed), 0)::bigint,
           coalesce(sum(p.timed_out), 0)::bigint, coalesce(sum(p.cancelled), 0)::bigint,
           coalesce(sum(p.retried), 0)::bigint, coalesce(sum(p.bridged), 0)::bigint,
           coalesce(sum(p.scored), 0)::bigint, coalesce(sum(p.score_sum), 0),
           coalesce(sum(p.tokens), 0)::bigint, coalesce(sum(p.cost_usd), 0)
    FROM batch_progress p
    WHERE p.batch_id = one.batch_id
$$;
COMMENT ON FUNCTION progress_of IS 'The counters of a batch, summed over its shards, in the order of the columns of batch_progress. An accepted batch has the total that it was accepted with.';
