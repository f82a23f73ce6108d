INSERT INTO scorecards
    (evaluation_id, batch_id, attempt, status, verdict, score, scores, tokens, cost_usd,
     latency_ms, exit_code, error, bridged, ended_at)
SELECT evaluation_id, batch_id, attempt, status, verdict, score, convert_from(scores, 'UTF8')::json, tokens, cost_usd,
       latency_ms, exit_code, convert_from(error, 'UTF8')::json, bridged, ended_at
FROM unnest(
    %b::text[], %b::text[], %b::integer[], %b::text[], %b::text[], %b::float8[], %b::bytea[], %b::bigint[],
    %b::numeric[], %b::float8[], %b::bigint[], %b::bytea[], %b::boolean[], %b::timestamptz[]
) AS card (evaluation_id, batch_id, attempt, status, verdict, score, scores, tokens, cost_usd,
           latency_ms, exit_code, error, bridged, ended_at)
ORDER BY evaluation_id
ON CONFLICT (evaluation_id) DO UPDATE
SET attempt = excluded.attempt, status = excluded.status, verdict = excluded.verdict, score = excluded.score,
    scores = excluded.scores, tokens = excluded.tokens, cost_usd = excluded.cost_usd,
    latency_ms = excluded.latency_ms, exit_code = excluded.exit_code, error = excluded.error,
    bridged = excluded.bridged, ended_at = excluded.ended_at;
