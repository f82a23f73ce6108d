INSERT INTO scorecards
    (evaluation_id, batch_id, attempt, status, verdict, score, scores, tokens, cost_usd,
     latency_ms, exit_code, error, bridged, ended_at)
SELECT evaluation_id, batch_id, attempt, status, verdict, score, scores, tokens, cost_usd,
       latency_ms, exit_code, error, bridged, ended_at
FROM staged
WHERE status IS NOT NULL AND evaluation_id <> ALL(%b::text[])
ORDER BY evaluation_id
ON CONFLICT (evaluation_id) DO UPDATE
SET attempt = excluded.attempt, status = excluded.status, verdict = excluded.verdict, score = excluded.score,
    scores = excluded.scores, tokens = excluded.tokens, cost_usd = excluded.cost_usd,
    latency_ms = excluded.latency_ms, exit_code = excluded.exit_code, error = excluded.error,
    bridged = excluded.bridged, ended_at = excluded.ended_at;
