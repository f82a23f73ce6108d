-- The shadow: what the log says, built beside the tables while they serve. Unlogged: a crash only means
-- to begin again. Each evaluation carries its share of the counters, so that one can be folded anew.
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
