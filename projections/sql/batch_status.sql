SELECT total, pending, completed, passed, failed, timed_out, cancelled, retried, bridged, score, tokens, cost_usd
FROM batch_status
WHERE batch_id = %s;
