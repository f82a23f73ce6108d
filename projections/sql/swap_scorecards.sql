INSERT INTO scorecards AS s
SELECT * FROM scoreline_rebuild.scorecards
ORDER BY evaluation_id
ON CONFLICT (evaluation_id) DO UPDATE
SET batch_id = excluded.batch_id, attempt = excluded.attempt, status = excluded.status,
    verdict = excluded.verdict, score = excluded.score, scores = excluded.scores, tokens = excluded.tokens,
    cost_usd = excluded.cost_usd, latency_ms = excluded.latency_ms, exit_code = excluded.exit_code,
    error = excluded.error, bridged = excluded.bridged, ended_at = excluded.ended_at
WHERE (s.batch_id, s.attempt, s.status, s.verdict, s.score, s.scores::text, s.tokens, s.cost_usd,
       s.latency_ms, s.exit_code, s.error::text, s.bridged, s.ended_at)
    IS DISTINCT FROM (excluded.batch_id, excluded.attempt, excluded.status, excluded.verdict, excluded.score,
                      excluded.scores::text, excluded.tokens, excluded.cost_usd, excluded.latency_ms,
                      excluded.exit_code, excluded.error::text, excluded.bridged, excluded.ended_at);
