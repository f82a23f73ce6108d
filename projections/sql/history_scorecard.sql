SELECT evaluation_id, batch_id, attempt, status, verdict, score, scores::text, tokens, cost_usd,
       latency_ms, exit_code, error::text, bridged, ended_at
FROM scorecards
WHERE evaluation_id = %s;
