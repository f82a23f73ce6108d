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

-- name: write_few
-- Writes the rows, events and scorecards of a few changes at once, as `insert_evaluations`, `move_evaluations`,
-- `copy_events` and `upsert_scorecards` write many; returns the evaluations that won the compare-and-set.
WITH staged AS MATERIALIZED (
    SELECT s.*, evaluation_id COLLATE "C" AS key
    FROM unnest(
        %b::text[], %b::text[], %b::date[], %b::smallint[], %b::integer[], %b::integer[], %b::integer[], %b::integer[],
        %b::text[], %b::text[], %b::boolean[], %b::text[], %b::timestamptz[], %b::text[], %b::text[],
        %b::double precision[], %b::bytea[], %b::bigint[], %b::text[], %b::double precision[], %b::bigint[],
        %b::bytea[]
    ) AS s (evaluation_id, batch_id, month, shard, from_attempt, from_sequence, attempt, sequence, state, owner,
            bridged, head, ended_at, status, verdict, score, scores, tokens, cost_usd, latency_ms, exit_code, error)
), created AS (
    INSERT INTO evaluations
        (evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, head, ended_at)
    SELECT key, batch_id, month, shard, attempt, sequence, state, owner, bridged, head, ended_at
    FROM staged
    WHERE from_attempt IS NULL
    ORDER BY key
    ON CONFLICT (evaluation_id) DO NOTHING
    RETURNING evaluation_id
), locked AS (
    SELECT e.evaluation_id, e.attempt, e.sequence
    FROM evaluations e
    WHERE e.evaluation_id IN (SELECT s.key FROM staged s WHERE s.from_attempt IS NOT NULL)
    ORDER BY e.evaluation_id
    FOR UPDATE
), moved AS (
    UPDATE evaluations e
    SET attempt = s.attempt, sequence = s.sequence, state = s.state, owner = s.owner, bridged = s.bridged,
        head = s.head, ended_at = s.ended_at, updated_at = now()
    FROM staged s
    JOIN locked l ON l.evaluation_id = s.key
    WHERE e.evaluation_id = s.key
      AND l.attempt = s.from_attempt AND l.sequence = s.from_sequence
    RETURNING e.evaluation_id
), won AS (
    SELECT evaluation_id FROM created UNION ALL SELECT evaluation_id FROM moved
), logged AS (
    INSERT INTO events (month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, event)
    SELECT a.month, a.evaluation_id, a.attempt, a.sequence, a.type, a.verdict, a.occurred_at, a.entry_id,
           convert_from(a.event, 'UTF8')::json
    FROM unnest(
        %b::date[], %b::text[], %b::integer[], %b::integer[], %b::text[],
        %b::text[], %b::timestamptz[], %b::text[], %b::bytea[]
    ) AS a (month, evaluation_id, attempt, sequence, type, verdict, occurred_at, entry_id, event)
    WHERE a.evaluation_id COLLATE "C" IN (SELECT evaluation_id FROM won)
), scored AS (
    INSERT INTO scorecards
        (evaluation_id, batch_id, attempt, status, verdict, score, scores, tokens, cost_usd,
         latency_ms, exit_code, error, bridged, ended_at)
    SELECT key, batch_id, attempt, status, verdict, score, convert_from(scores, 'UTF8')::json, tokens,
           cost_usd::numeric, latency_ms, exit_code, convert_from(error, 'UTF8')::json, bridged, ended_at
    FROM staged
    WHERE status IS NOT NULL AND key IN (SELECT evaluation_id FROM won)
    ORDER BY key
    ON CONFLICT (evaluation_id) DO UPDATE
    SET attempt = excluded.attempt, status = excluded.status, verdict = excluded.verdict, score = excluded.score,
        scores = excluded.scores, tokens = excluded.tokens, cost_usd = excluded.cost_usd,
        latency_ms = excluded.latency_ms, exit_code = excluded.exit_code, error = excluded.error,
        bridged = excluded.bridged, ended_at = excluded.ended_at
)
SELECT evaluation_id FROM won;

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
WHERE evaluation_id = ANY(%b::text[]);

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
