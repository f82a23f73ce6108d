SELECT shard, total, completed, passed, failed, timed_out, cancelled, retried, bridged,
       scored, score_sum, tokens, cost_usd
FROM batch_progress
WHERE batch_id = %s;
