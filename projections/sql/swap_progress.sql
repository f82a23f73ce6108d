WITH recount AS (
    SELECT batch_id, shard, sum(total)::bigint AS total, sum(completed)::bigint AS completed,
           sum(passed)::bigint AS passed, sum(failed)::bigint AS failed, sum(timed_out)::bigint AS timed_out,
           sum(cancelled)::bigint AS cancelled, sum(retried)::bigint AS retried,
           sum(bridges)::bigint AS bridged, sum(scored)::bigint AS scored, sum(score_sum) AS score_sum,
           sum(tokens)::bigint AS tokens, sum(cost_usd) AS cost_usd
    FROM scoreline_rebuild.evaluations
    GROUP BY batch_id, shard
)
INSERT INTO batch_progress AS p
    (batch_id, shard, total, completed, passed, failed, timed_out, cancelled, retried, bridged,
     scored, score_sum, tokens, cost_usd)
SELECT batch_id, shard, total, completed, passed, failed, timed_out, cancelled, retried, bridged,
       scored, score_sum, tokens, cost_usd
FROM recount
ORDER BY batch_id, shard
ON CONFLICT (batch_id, shard) DO UPDATE
SET total = excluded.total, completed = excluded.completed, passed = excluded.passed, failed = excluded.failed,
    timed_out = excluded.timed_out, cancelled = excluded.cancelled, retried = excluded.retried,
    bridged = excluded.bridged, scored = excluded.scored, score_sum = excluded.score_sum,
    tokens = excluded.tokens, cost_usd = excluded.cost_usd
WHERE (p.total, p.completed, p.passed, p.failed, p.timed_out, p.cancelled, p.retried, p.bridged,
       p.scored, p.score_sum, p.tokens, p.cost_usd)
    IS DISTINCT FROM
      (excluded.total, excluded.completed, excluded.passed, excluded.failed, excluded.timed_out,
       excluded.cancelled, excluded.retried, excluded.bridged, excluded.scored, excluded.score_sum,
       excluded.tokens, excluded.cost_usd);
