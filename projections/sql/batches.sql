-- Read queries on `batches`: identity, status and lists.

-- name: read_batch_months
-- Returns the months of some batches and ensures their event partitions.
SELECT batch_id, month, ensure_events_partition(month) FROM batches WHERE batch_id = ANY(%b);

-- name: insert_external_batches
-- Inserts a batch of kind `external` for each id that was never submitted.
INSERT INTO batches (batch_id, kind, month)
SELECT batch_id, 'external', date_trunc('month', now() AT TIME ZONE 'UTC')::date
FROM unnest(%b::text[]) AS unknown (batch_id)
ORDER BY batch_id
ON CONFLICT DO NOTHING;

-- name: batch_exists
-- Returns one row if a batch has this id.
SELECT 1 FROM batches WHERE batch_id = %s;

-- name: batch_ids
-- Returns all batch ids, oldest first.
SELECT batch_id FROM batches ORDER BY accepted_at, batch_id;

-- name: batch_target_types
-- Returns the target type of each batch: one type, `mixed`, or `external`.
SELECT b.batch_id,
       CASE WHEN b.spec IS NULL THEN 'external'
            ELSE (SELECT CASE WHEN min(t ->> 'type') = max(t ->> 'type') THEN min(t ->> 'type') ELSE 'mixed' END
                  FROM json_array_elements(b.spec -> 'targets') t) END
FROM batches b
WHERE b.batch_id = ANY(%s);

-- name: nearby_batches
-- Returns the neighbours of an id in index order: the ids that share the longest prefix.
(SELECT batch_id FROM batches WHERE batch_id >= %(wanted)s ORDER BY batch_id LIMIT %(limit)s)
UNION
(SELECT batch_id FROM batches WHERE batch_id < %(wanted)s ORDER BY batch_id DESC LIMIT %(limit)s);

-- name: batch_reordered
-- Counts events that arrived after one of their successors, and the evaluations concerned.
WITH arrivals AS (
    SELECT e.evaluation_id, e.attempt, e.sequence,
           split_part(e.entry_id, '-', 1)::numeric * 1000000 + split_part(e.entry_id, '-', 2)::numeric AS arrival
    FROM evaluations v
    JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
    -- Openings that were committed before they were appended carry the time of another clock.
    WHERE v.batch_id = %s AND split_part(e.entry_id, '-', 2)::numeric < 1000000
), compared AS (
    SELECT evaluation_id, arrival,
           min(arrival) OVER (
               PARTITION BY evaluation_id, attempt ORDER BY sequence
               ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
           ) AS first_successor
    FROM arrivals
)
SELECT count(*), count(DISTINCT evaluation_id)
FROM compared
WHERE first_successor < arrival;

-- name: batch_counters
-- Returns the summed counters of a batch, if an event of it is stored.
SELECT c.*
FROM batches b
CROSS JOIN LATERAL progress_of(b) c
WHERE b.batch_id = %s AND EXISTS (SELECT FROM batch_progress p WHERE p.batch_id = b.batch_id);

-- name: batch_unfinished
-- Returns the open evaluations of a batch with their cursor and the reasons of their quarantined entries.
SELECT v.evaluation_id, v.attempt, v.sequence, v.state,
       (SELECT string_agg(DISTINCT q.reason, ', ' ORDER BY q.reason)
        FROM quarantine q WHERE q.evaluation_id = v.evaluation_id)
FROM evaluations v
WHERE v.batch_id = %s AND v.ended_at IS NULL
ORDER BY v.evaluation_id
LIMIT %s;

-- name: batch_verdicts
-- Counts the events of a batch by verdict.
SELECT e.verdict, count(*)
FROM evaluations v
JOIN events e ON e.month = v.month AND e.evaluation_id = v.evaluation_id
WHERE v.batch_id = %s
GROUP BY e.verdict
ORDER BY e.verdict;

-- name: batches_list
-- Returns the newest batches with their counters; a batch is `completed` only once it is finished.
SELECT b.batch_id, b.name, b.project, w.status, b.accepted_at, b.finished_at, now(), is_scored(b), b.run_id,
       b.unrecorded_usd, c.*
FROM batches b
CROSS JOIN LATERAL (
    SELECT CASE WHEN b.kind = 'external' THEN 'external'
                WHEN b.state = 'running' AND b.finished_at IS NOT NULL THEN 'completed'
                WHEN b.state = 'completed' AND b.finished_at IS NULL THEN 'running'
                ELSE b.state END AS status
) w
CROSS JOIN LATERAL progress_of(b) c
WHERE (%(status)s::text IS NULL OR w.status = %(status)s)
  AND (%(project)s::text IS NULL OR b.project = %(project)s)
ORDER BY b.accepted_at DESC, b.batch_id DESC
LIMIT %(limit)s;

-- name: batches_serial
-- Counts evaluations that wait for an earlier one of their serial group.
SELECT count(*)
FROM serial_links l
JOIN evaluations f ON f.evaluation_id = l.follows AND f.ended_at IS NULL
WHERE l.batch_id = %s;

-- name: batches_snapshot
-- Returns one batch and its counters at one moment. An external batch has no end: its last result stands in.
SELECT b.batch_id, b.kind, b.name, b.project, b.dataset, b.state, b.reason, b.spec::text,
       b.accepted_at, b.deadline,
       CASE WHEN b.kind = 'external' AND b.finished_at IS NULL
                 AND c.total = c.completed + c.failed + c.timed_out + c.cancelled
            THEN (SELECT max(ended_at) FROM scorecards s WHERE s.batch_id = b.batch_id)
            ELSE b.finished_at END,
       now(), b.run_id, ARRAY(SELECT json_array_elements_text(b.spec -> 'requires')),
       b.max_cost_usd, b.max_tokens, c.cost_usd + b.unrecorded_usd, c.tokens + b.unrecorded_tokens,
       coalesce(b.next_usd, 0), coalesce(b.next_tokens, 0), b.unrecorded_usd, b.unrecorded_tokens,
       c.*
FROM batches b
CROSS JOIN LATERAL progress_of(b) c
WHERE b.batch_id = %s;

-- name: batches_variants
-- Returns the counters of each variant of a batch.
SELECT coalesce(v.variant, 0), count(*), count(s.evaluation_id),
       count(*) FILTER (WHERE s.status = 'completed'), count(*) FILTER (WHERE s.verdict = 'passed'),
       count(*) FILTER (WHERE s.status IN ('failed', 'timed_out')), avg(s.score)
FROM evaluations v
LEFT JOIN scorecards s USING (evaluation_id)
WHERE v.batch_id = %s
GROUP BY 1
ORDER BY 1;

-- name: batches_waiting
-- Counts published evaluations that have not ended, by state: at most one window, however large the batch.
SELECT v.state, count(*), min(v.updated_at),
       (array_agg(v.evaluation_id ORDER BY v.updated_at, v.evaluation_id))[1],
       min(r.event #>> '{data,retry_at}')
FROM batches b
JOIN evaluations v ON v.batch_id = b.batch_id AND v.ended_at IS NULL
                  AND (b.kind = 'external' OR v.evaluation_id <= b.published_to)
                  AND v.asked_in IS NULL
LEFT JOIN events r ON r.month = v.month AND r.evaluation_id = v.evaluation_id AND r.attempt = v.attempt
                  AND r.sequence = v.sequence AND r.type = 'retrying'
WHERE b.batch_id = %s
GROUP BY v.state
ORDER BY count(*) DESC, v.state;
