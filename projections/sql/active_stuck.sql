-- Evaluations of running batches that executors were told of, unchanged for long beyond their time-out. Those
-- that wait in a line count only where nothing of their batch has ended for as long: then nobody serves it.
WITH running AS MATERIALIZED (
    SELECT b.batch_id, b.published_to, t.since,
           greatest(b.accepted_at,
                    (SELECT max(p.last_ended_at) FROM batch_progress p WHERE p.batch_id = b.batch_id),
                    (SELECT max(e.at) FROM batch_events e WHERE e.batch_id = b.batch_id AND e.type = 'running')
           ) < t.since AS is_idle
    FROM batches b
    CROSS JOIN LATERAL (
        SELECT now() - %(beyond)s::interval - make_interval(secs => (b.spec ->> 'timeout')::float8 + coalesce((
            SELECT sum((e ->> 'timeout')::float8) FROM json_array_elements(b.spec -> 'evaluators') e
        ), 0)) AS since
    ) t
    WHERE b.kind = 'submitted' AND b.total IS NOT NULL AND b.finished_at IS NULL AND b.run_id = %(run_id)s
      AND b.state NOT IN ('paused', 'cancelled', 'expired') AND b.accepted_at < t.since
)
SELECT least(%(limit)s, coalesce(sum(stuck.many), 0))
FROM running r
CROSS JOIN LATERAL (
    SELECT count(*) AS many
    FROM (
        SELECT
        FROM (
            SELECT v
            FROM evaluations v
            WHERE v.batch_id = r.batch_id AND v.ended_at IS NULL AND v.evaluation_id <= r.published_to
              AND v.updated_at < r.since AND v.asked_in IS NULL
              AND (r.is_idle OR v.state NOT IN ('queued', 'retrying'))
            OFFSET 0  -- the epoch is looked up only for what is left
        ) old
        WHERE epoch_of(old.v) <> ''
        LIMIT %(limit)s
    ) found
) stuck;
