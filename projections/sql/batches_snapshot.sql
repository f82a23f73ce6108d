-- One batch as it stands. An external one is never said to be over: its last result is its end so far.
SELECT b.batch_id, b.kind, b.name, b.project, b.dataset, b.state, b.reason, b.spec::text,
       b.accepted_at, b.deadline,
       CASE WHEN b.kind = 'external' AND b.finished_at IS NULL AND coalesce(s.pending, 0) = 0
            THEN (SELECT max(ended_at) FROM scorecards c WHERE c.batch_id = b.batch_id)
            ELSE b.finished_at END,
       now(), coalesce(b.total, s.total, 0), coalesce(s.completed, 0), coalesce(s.passed, 0),
       coalesce(s.failed, 0), coalesce(s.timed_out, 0), coalesce(s.cancelled, 0), coalesce(s.retried, 0),
       coalesce(s.bridged, 0), s.score, coalesce(s.tokens, 0), coalesce(s.cost_usd, 0),
       b.max_cost_usd, b.max_tokens,
       b.unrecorded_usd, b.unrecorded_tokens, coalesce(b.next_usd, 0), coalesce(b.next_tokens, 0),
       b.run_id, ARRAY(SELECT json_array_elements_text(b.spec -> 'requires'))
FROM batches b
LEFT JOIN batch_status s USING (batch_id)
WHERE b.batch_id = %s;
