-- Rows of `evaluations`: the compare-and-set of the transactional projection, and lookups by id.

-- name: create_staged
-- Creates the temporary table that a commit copies its rows into; emptied at the end of each transaction.
CREATE TEMP TABLE IF NOT EXISTS staged (
    evaluation_id text COLLATE "C",
    batch_id      text,
    month         date,
    shard         smallint,
    from_attempt  integer,
    from_sequence integer,
    attempt       integer,
    sequence      integer,
    state         text,
    owner         text,
    bridged       boolean,
    head          text,
    ended_at      timestamptz,
    -- the scorecard, where there is one
    status        text,
    verdict       text,
    score         double precision,
    scores        json,
    tokens        bigint,
    cost_usd      numeric,
    latency_ms    double precision,
    exit_code     bigint,
    error         json
) ON COMMIT DELETE ROWS;

-- name: copy_staged
-- COPY target for staged rows (binary).
COPY staged FROM STDIN (FORMAT binary)

-- name: insert_evaluations
-- Inserts the staged evaluations that had no row; a row another worker inserted first stays.
INSERT INTO evaluations
    (evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, head, ended_at)
SELECT evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, head, ended_at
FROM staged
WHERE from_attempt IS NULL
ORDER BY evaluation_id
ON CONFLICT (evaluation_id) DO NOTHING;

-- name: move_evaluations
-- Compare-and-set: moves staged rows whose cursor is still the one that was read. Locks in id order, so that
-- no two workers deadlock.
WITH locked AS (
    SELECT e.evaluation_id, e.attempt, e.sequence
    FROM evaluations e
    WHERE e.evaluation_id IN (SELECT s.evaluation_id FROM staged s WHERE s.from_attempt IS NOT NULL)
    ORDER BY e.evaluation_id
    FOR UPDATE
)
UPDATE evaluations e
SET attempt = s.attempt, sequence = s.sequence, state = s.state, owner = s.owner, bridged = s.bridged,
    head = s.head, ended_at = s.ended_at, updated_at = now()
FROM staged s
JOIN locked l ON l.evaluation_id = s.evaluation_id
WHERE e.evaluation_id = s.evaluation_id
  AND l.attempt = s.from_attempt AND l.sequence = s.from_sequence;

-- name: read_lost_races
-- Returns the staged evaluations whose row this transaction did not write: they lost the compare-and-set.
SELECT s.evaluation_id
FROM staged s
LEFT JOIN evaluations e ON e.evaluation_id = s.evaluation_id AND e.xmin = pg_current_xact_id()::xid
WHERE e.evaluation_id IS NULL;

-- name: read_evaluations
-- Returns the rows of some evaluations, with their cursors.
SELECT evaluation_id, batch_id, month, attempt, sequence, state, owner, bridged, head
FROM evaluations
WHERE evaluation_id = ANY(%b);

-- name: read_open_evaluations
-- Keyset pagination over open evaluations that have not moved for a while, in id order. Beyond `published_to`
-- a submitted batch has no stream to sweep.
SELECT e.evaluation_id
FROM batches b
CROSS JOIN LATERAL (
    SELECT v.evaluation_id
    FROM evaluations v
    WHERE v.batch_id = b.batch_id AND v.ended_at IS NULL AND v.evaluation_id > %(after)b
      AND v.asked_in IS NULL
      AND (b.kind = 'external' OR v.evaluation_id <= b.published_to)
      AND v.updated_at < now() - make_interval(secs => %(unchanged_for)b)
    ORDER BY v.evaluation_id
    LIMIT %(limit)b
) e
WHERE b.finished_at IS NULL
ORDER BY e.evaluation_id
LIMIT %(limit)b;

-- name: nearby_evaluations
-- Returns the neighbours of some ids in id order: two short index scans on the primary key for each.
SELECT DISTINCT near.evaluation_id
FROM unnest(%(probes)s::text[]) AS probe (place)
CROSS JOIN LATERAL (
    (SELECT evaluation_id FROM evaluations
     WHERE evaluation_id >= probe.place COLLATE "C"
     ORDER BY evaluation_id LIMIT %(limit)s)
    UNION ALL
    (SELECT evaluation_id FROM evaluations
     WHERE evaluation_id < probe.place COLLATE "C"
     ORDER BY evaluation_id DESC LIMIT %(limit)s)
) AS near;
