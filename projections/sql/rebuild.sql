-- A rebuild folds a batch's log into a shadow schema and swaps rows in one transaction.

-- name: create_rebuild
-- Creates the shadow schema. Unlogged: after a crash the rebuild starts again. Each evaluation carries its
-- share of the counters, so that one evaluation can be folded again.
DROP SCHEMA IF EXISTS scoreline_rebuild CASCADE;
CREATE SCHEMA scoreline_rebuild;
CREATE UNLOGGED TABLE scoreline_rebuild.evaluations (
    evaluation_id text COLLATE "C" PRIMARY KEY,
    batch_id      text NOT NULL,
    month         date NOT NULL,
    shard         smallint NOT NULL,
    attempt       integer NOT NULL,
    sequence      integer NOT NULL,
    state         text NOT NULL,
    owner         text,
    bridged       boolean NOT NULL,
    ended_at      timestamptz,
    head          text,
    events        integer NOT NULL,
    total         bigint NOT NULL,
    completed     bigint NOT NULL,
    passed        bigint NOT NULL,
    failed        bigint NOT NULL,
    timed_out     bigint NOT NULL,
    cancelled     bigint NOT NULL,
    retried       bigint NOT NULL,
    bridges       bigint NOT NULL,
    scored        bigint NOT NULL,
    score_sum     numeric NOT NULL,
    tokens        bigint NOT NULL,
    cost_usd      numeric NOT NULL
);
CREATE UNLOGGED TABLE scoreline_rebuild.scorecards (LIKE scorecards INCLUDING CONSTRAINTS);
ALTER TABLE scoreline_rebuild.scorecards ADD PRIMARY KEY (evaluation_id);

-- The evaluations whose rows already are what follows from their log, with what they add to the counters.
CREATE UNLOGGED TABLE scoreline_rebuild.cleared (
    evaluation_id text COLLATE "C" NOT NULL,
    shard         smallint NOT NULL,
    events        integer NOT NULL,
    completed     boolean NOT NULL,
    passed        boolean NOT NULL,
    score         numeric,
    tokens        bigint NOT NULL,
    cost_usd      numeric NOT NULL
);

-- name: drop_rebuild
-- Drops the shadow schema.
DROP SCHEMA IF EXISTS scoreline_rebuild CASCADE;

-- name: copy_rebuilt_evaluations
-- COPY target for folded evaluations (binary).
COPY scoreline_rebuild.evaluations FROM STDIN (FORMAT binary)

-- name: copy_rebuilt_scorecards
-- COPY target for folded scorecards (binary).
COPY scoreline_rebuild.scorecards FROM STDIN (FORMAT binary)

-- name: copy_cleared
-- COPY target for evaluations that need no correction (binary).
COPY scoreline_rebuild.cleared FROM STDIN (FORMAT binary)

-- name: delete_rebuilt
-- Deletes evaluations and scorecards from the shadow, before they are folded again.
WITH outdated AS (
    DELETE FROM scoreline_rebuild.evaluations WHERE evaluation_id = ANY(%(ids)s)
), recleared AS (
    DELETE FROM scoreline_rebuild.cleared WHERE evaluation_id = ANY(%(ids)s)
)
DELETE FROM scoreline_rebuild.scorecards WHERE evaluation_id = ANY(%(ids)s);

-- name: rebuild_counted
-- Counts the folded evaluations and events.
SELECT count(*), coalesce(sum(events), 0)
FROM (
    SELECT events FROM scoreline_rebuild.evaluations
    UNION ALL
    SELECT events FROM scoreline_rebuild.cleared
) folded;

-- name: rebuild_began
-- Returns the oldest transaction that is not over in the snapshot of this statement.
SELECT pg_snapshot_xmin(pg_current_snapshot())::xid::text;

-- name: rebuild_outdated
-- Returns evaluations that got events since they were folded (the log only grows, so a count suffices), and
-- cleared ones with a row that was written or deleted by a transaction that was not over at the snapshot.
WITH counted AS (
    SELECT v.evaluation_id, (
        SELECT count(*) FROM events e WHERE e.month = v.month AND e.evaluation_id = v.evaluation_id
    ) AS events
    FROM evaluations v
    WHERE v.batch_id = %(batch)s
), folded AS (
    SELECT evaluation_id, events FROM scoreline_rebuild.evaluations
    UNION ALL
    SELECT evaluation_id, events FROM scoreline_rebuild.cleared
)
SELECT c.evaluation_id
FROM counted c
LEFT JOIN folded f ON f.evaluation_id = c.evaluation_id
WHERE f.events IS DISTINCT FROM c.events
UNION
SELECT r.evaluation_id
FROM scoreline_rebuild.cleared r
LEFT JOIN evaluations v ON v.evaluation_id = r.evaluation_id
LEFT JOIN scorecards s ON s.evaluation_id = r.evaluation_id
WHERE v.evaluation_id IS NULL
   OR r.completed IS DISTINCT FROM (s.evaluation_id IS NOT NULL)
   OR age(v.xmin) <= age(%(began)s::xid)
   OR age(s.xmin) <= age(%(began)s::xid)
ORDER BY 1;

-- name: lock_rebuilt
-- Blocks writers and no readers, in the order in which a storage worker locks the tables.
LOCK TABLE evaluations, scorecards, batch_progress IN SHARE ROW EXCLUSIVE MODE;

-- name: swap_evaluations
-- Upserts the rows of `evaluations` that differ; writes nothing where the table is right.
INSERT INTO evaluations AS v
    (evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, ended_at, head)
SELECT evaluation_id, batch_id, month, shard, attempt, sequence, state, owner, bridged, ended_at, head
FROM scoreline_rebuild.evaluations
ORDER BY evaluation_id
ON CONFLICT (evaluation_id) DO UPDATE
SET batch_id = excluded.batch_id, month = excluded.month, shard = excluded.shard, attempt = excluded.attempt,
    sequence = excluded.sequence, state = excluded.state, owner = excluded.owner, bridged = excluded.bridged,
    ended_at = excluded.ended_at, updated_at = now()
WHERE (v.batch_id, v.month, v.shard, v.attempt, v.sequence, v.state, v.owner, v.bridged, v.ended_at)
    IS DISTINCT FROM (excluded.batch_id, excluded.month, excluded.shard, excluded.attempt, excluded.sequence,
                      excluded.state, excluded.owner, excluded.bridged, excluded.ended_at);

-- name: swap_scorecards_away
-- Deletes the scorecards of a batch that the shadow does not have.
DELETE FROM scorecards s
WHERE s.batch_id = %s
  AND NOT EXISTS (SELECT FROM scoreline_rebuild.scorecards r WHERE r.evaluation_id = s.evaluation_id)
  AND NOT EXISTS (SELECT FROM scoreline_rebuild.cleared r WHERE r.evaluation_id = s.evaluation_id);

-- name: swap_scorecards
-- Upserts the scorecards that differ.
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

-- name: swap_progress_away
-- Deletes the counters of a batch's shards that the shadow does not have.
DELETE FROM batch_progress p
WHERE p.batch_id = %s
  AND NOT EXISTS (SELECT FROM scoreline_rebuild.evaluations r WHERE r.shard = p.shard)
  AND NOT EXISTS (SELECT FROM scoreline_rebuild.cleared r WHERE r.shard = p.shard);

-- name: swap_progress
-- Upserts the counters that differ, summed from the shadow.
WITH shares AS (
    SELECT batch_id, shard, total, completed, passed, failed, timed_out, cancelled, retried, bridges, scored,
           score_sum, tokens, cost_usd
    FROM scoreline_rebuild.evaluations
    UNION ALL
    SELECT %s, shard, 1, completed::int, passed::int, 0, 0, 0, 0, 0, (score IS NOT NULL)::int, coalesce(score, 0),
           tokens, cost_usd
    FROM scoreline_rebuild.cleared
), recount AS (
    SELECT batch_id, shard, sum(total)::bigint AS total, sum(completed)::bigint AS completed,
           sum(passed)::bigint AS passed, sum(failed)::bigint AS failed, sum(timed_out)::bigint AS timed_out,
           sum(cancelled)::bigint AS cancelled, sum(retried)::bigint AS retried,
           sum(bridges)::bigint AS bridged, sum(scored)::bigint AS scored, sum(score_sum) AS score_sum,
           sum(tokens)::bigint AS tokens, sum(cost_usd) AS cost_usd
    FROM shares
    GROUP BY batch_id, shard
)
INSERT INTO batch_progress AS p
    (batch_id, shard, total, completed, passed, failed, timed_out, cancelled, retried, bridged,
     scored, score_sum, tokens, cost_usd)
SELECT batch_id, shard, total, completed, passed, failed, timed_out, cancelled, retried, bridged,
       scored, score_sum, tokens, cost_usd
FROM recount
ORDER BY batch_id, shard
ON CONFLICT (batch_id, shard) DO UPDATE
SET total = excluded.total, completed = excluded.completed, passed = excluded.passed, failed = excluded.failed,
    timed_out = excluded.timed_out, cancelled = excluded.cancelled, retried = excluded.retried,
    bridged = excluded.bridged, scored = excluded.scored, score_sum = excluded.score_sum,
    tokens = excluded.tokens, cost_usd = excluded.cost_usd
WHERE (p.total, p.completed, p.passed, p.failed, p.timed_out, p.cancelled, p.retried, p.bridged,
       p.scored, p.score_sum, p.tokens, p.cost_usd)
    IS DISTINCT FROM
      (excluded.total, excluded.completed, excluded.passed, excluded.failed, excluded.timed_out,
       excluded.cancelled, excluded.retried, excluded.bridged, excluded.scored, excluded.score_sum,
       excluded.tokens, excluded.cost_usd);
