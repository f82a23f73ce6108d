-- Rows of `batch_progress`: one set of counters per batch and shard.

-- name: add_progress
-- Adds to the counters of batches and shards, in key order.
INSERT INTO batch_progress AS p
    (batch_id, shard, total, completed, passed, failed, timed_out, cancelled, retried, bridged,
     scored, score_sum, tokens, cost_usd)
SELECT batch_id, shard, total, completed, passed, failed, timed_out, cancelled, retried, bridged,
       scored, score_sum::numeric, tokens, cost_usd::numeric
FROM unnest(
    %b::text[], %b::smallint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[],
    %b::bigint[], %b::bigint[], %b::bigint[], %b::text[], %b::bigint[], %b::text[]
) AS d (batch_id, shard, total, completed, passed, failed, timed_out, cancelled, retried, bridged,
        scored, score_sum, tokens, cost_usd)
ORDER BY batch_id, shard
ON CONFLICT (batch_id, shard) DO UPDATE
SET total = p.total + excluded.total, completed = p.completed + excluded.completed,
    passed = p.passed + excluded.passed, failed = p.failed + excluded.failed,
    timed_out = p.timed_out + excluded.timed_out, cancelled = p.cancelled + excluded.cancelled,
    retried = p.retried + excluded.retried, bridged = p.bridged + excluded.bridged,
    scored = p.scored + excluded.scored, score_sum = p.score_sum + excluded.score_sum,
    tokens = p.tokens + excluded.tokens, cost_usd = p.cost_usd + excluded.cost_usd,
    last_ended_at = CASE WHEN excluded.completed + excluded.failed + excluded.timed_out + excluded.cancelled > 0
                         THEN excluded.last_ended_at ELSE p.last_ended_at END;

-- name: read_progress
-- Returns the counters of a batch by shard.
SELECT shard, total, completed, passed, failed, timed_out, cancelled, retried, bridged,
       scored, score_sum, tokens, cost_usd
FROM batch_progress
WHERE batch_id = %s;
