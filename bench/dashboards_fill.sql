-- One batch that is over, with lives as executors write them: the same shape and nearly the same bytes.
INSERT INTO batches (batch_id, kind, month, name, spec, total, published_to, finished_at, accepted_at)
VALUES (%(batch)s, 'submitted', date_trunc('month', now())::date, %(batch)s,
        '{"prompts": ["{input}"], "targets": [{"label": "one"}, {"label": "two"}]}', %(total)s, '~', now(),
        now() - interval '3 hours');
SELECT ensure_events_partition(date_trunc('month', now())::date);
INSERT INTO evaluations (evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, ended_at, head,
                         case_id, variant, repetition)
SELECT %(batch)s || '.' || lpad(n::text, 8, '0'), %(batch)s, date_trunc('month', now())::date, n %% 4, 1, 4,
       CASE WHEN n %% 50 = 0 THEN 'failed' ELSE 'completed' END, 'executor-' || n %% 40 || '-1a2b3c4d',
       now() - interval '2 hours' + n * interval '2 hours' / %(total)s, '1700000000000-' || n, (n / 2)::text, n %% 2, 1
FROM generate_series(1, %(total)s) AS n;
INSERT INTO scorecards (evaluation_id, batch_id, attempt, status, verdict, score, scores, tokens, cost_usd, latency_ms,
                        error, bridged, ended_at)
SELECT v.evaluation_id, v.batch_id, 1, v.state, CASE WHEN v.state = 'completed' THEN CASE WHEN c.n %% 3 = 0 THEN 'failed' ELSE 'passed' END END,
       CASE WHEN v.state = 'completed' THEN c.n %% 101 / 100.0 END,
       '[{"evaluator":"exact","score":1.0,"passed":true,"reason":"","usage":{"input_tokens":0,"output_tokens":0},"cost_usd":0.0}]',
       150, 0.0012, (c.n * 7919) %% 30000,
       CASE WHEN v.state = 'failed' THEN '{"kind":"model_not_found","message":"there is no such model"}'::json END, false, v.ended_at
FROM evaluations v, LATERAL (SELECT right(v.evaluation_id, 8)::bigint AS n) AS c
WHERE v.batch_id = %(batch)s;
INSERT INTO events (month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, recorded_at, event)
SELECT v.month, v.evaluation_id, 1, s.sequence,
       CASE WHEN s.sequence = 4 THEN v.state ELSE (ARRAY['queued', 'provisioning', 'running', 'responded'])[s.sequence + 1] END,
       'applied', v.ended_at - (4 - s.sequence) * interval '300 ms', '1700000000000-' || s.sequence, v.ended_at,
       json_build_object('evaluation_id', v.evaluation_id, 'batch_id', v.batch_id, 'attempt', 1, 'sequence', s.sequence,
                         'occurred_at', v.ended_at, 'source', v.owner, 'schema_version', 3, 'data', json_build_object(
                             'executor', v.owner, 'nonce', md5(v.evaluation_id), 'cost_usd', 0.0012, 'output', repeat('word ', 20)))
FROM evaluations v, generate_series(0, 4) AS s (sequence)
WHERE v.batch_id = %(batch)s;
INSERT INTO batch_progress (batch_id, shard, total, completed, passed, failed, scored, score_sum, tokens, cost_usd)
SELECT batch_id, right(evaluation_id, 1)::int %% 4, count(*), count(*) FILTER (WHERE status = 'completed'),
       count(*) FILTER (WHERE verdict = 'passed'), count(*) FILTER (WHERE status = 'failed'), count(score),
       sum(score::numeric), sum(tokens), sum(cost_usd)
FROM scorecards
WHERE batch_id = %(batch)s
GROUP BY 1, 2;
INSERT INTO batch_events (batch_id, type, by_whom) VALUES (%(batch)s, 'submitted', 'bench'), (%(batch)s, 'finished', 'bench');
INSERT INTO gap_bridges (evaluation_id, attempt, closing_sequence, missing)
SELECT evaluation_id, 1, 4, '{[2,4)}' FROM evaluations WHERE batch_id = %(batch)s AND evaluation_id LIKE '%%7777';
