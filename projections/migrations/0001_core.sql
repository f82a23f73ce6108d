-- The core: facts (batches, events, gap_bridges, quarantine) and what is folded from them
-- (evaluations, scorecards, batch_progress).

CREATE TABLE settings (
    name  text PRIMARY KEY,
    value text NOT NULL
);
COMMENT ON TABLE settings IS 'What every process must agree on, such as the number of shards.';

CREATE TABLE batches (
    batch_id    text COLLATE "C" PRIMARY KEY,
    kind        text NOT NULL CHECK (kind IN ('submitted', 'external')),
    accepted_at timestamptz NOT NULL DEFAULT now(),
    month       date NOT NULL
);
COMMENT ON COLUMN batches.month IS 'First day of the month of acceptance: the partition its events live in.';

CREATE TABLE events (
    month         date NOT NULL,
    evaluation_id text COLLATE "C" NOT NULL,
    attempt       integer NOT NULL,
    sequence      integer NOT NULL,
    type          text NOT NULL,
    verdict       text NOT NULL CHECK (verdict IN ('applied', 'stale', 'late', 'rejected')),
    occurred_at   timestamptz NOT NULL,
    entry_id      text NOT NULL,
    recorded_at   timestamptz NOT NULL DEFAULT now(),
    event         json NOT NULL,
    PRIMARY KEY (month, evaluation_id, attempt, sequence)
) PARTITION BY RANGE (month);
COMMENT ON TABLE events IS 'The log for good: inserted, never updated or deleted; retention drops a month.';
COMMENT ON COLUMN events.entry_id IS 'Where it arrived in Redis; with recorded_at the only column that depends on timing.';
COMMENT ON COLUMN events.event IS 'The envelope as it came, byte for byte but for NULs (json, not jsonb, keeps it so).';

CREATE TABLE gap_bridges (
    evaluation_id    text COLLATE "C" NOT NULL,
    attempt          integer NOT NULL,
    closing_sequence integer NOT NULL,
    missing          int4multirange NOT NULL,
    bridged_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (evaluation_id, attempt, closing_sequence)
);
COMMENT ON TABLE gap_bridges IS 'A closing event was applied although these sequences had not arrived in time.';

CREATE TABLE quarantine (
    id             text COLLATE "C" PRIMARY KEY,
    evaluation_id  text COLLATE "C",
    reason         text NOT NULL,
    detail         text NOT NULL,
    entry_id       text NOT NULL,
    body           bytea NOT NULL,
    quarantined_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN quarantine.id IS 'A digest of evaluation, reason and body: the same thing is listed once.';
CREATE INDEX quarantine_by_evaluation ON quarantine (evaluation_id);
CREATE INDEX quarantine_by_time ON quarantine (quarantined_at DESC, id);

CREATE TABLE evaluations (
    evaluation_id text COLLATE "C" PRIMARY KEY,
    batch_id      text COLLATE "C" NOT NULL,
    month         date NOT NULL,
    shard         smallint NOT NULL,
    attempt       integer NOT NULL,
    sequence      integer NOT NULL,
    state         text NOT NULL,
    owner         text,
    bridged       boolean NOT NULL DEFAULT false,
    epoch         text NOT NULL DEFAULT '',
    published     boolean NOT NULL DEFAULT true,
    ended_at      timestamptz,
    head          text,
    updated_at    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 85);
COMMENT ON COLUMN evaluations.sequence IS 'With attempt: how far the history is applied; the pair every update compares and sets.';
COMMENT ON COLUMN evaluations.head IS 'Newest entry id that was applied: tells a stream already read from one written anew.';
-- No indexed column changes while an evaluation runs, so its updates stay on their page.
CREATE INDEX evaluations_open ON evaluations (evaluation_id) WHERE ended_at IS NULL;
CREATE INDEX evaluations_by_batch ON evaluations (batch_id, evaluation_id);

CREATE TABLE scorecards (
    evaluation_id text COLLATE "C" PRIMARY KEY,
    batch_id      text COLLATE "C" NOT NULL,
    attempt       integer NOT NULL,
    status        text NOT NULL CHECK (status IN ('completed', 'failed', 'timed_out', 'cancelled')),
    verdict       text CHECK (verdict IN ('passed', 'failed')),
    score         double precision,
    scores        json NOT NULL,
    tokens        bigint NOT NULL,
    cost_usd      numeric NOT NULL,
    latency_ms    double precision NOT NULL,
    exit_code     bigint,
    error         json,
    bridged       boolean NOT NULL,
    ended_at      timestamptz NOT NULL
);
CREATE INDEX scorecards_by_batch ON scorecards (batch_id, status);

CREATE TABLE batch_progress (
    batch_id  text COLLATE "C" NOT NULL,
    shard     smallint NOT NULL,
    total     bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,
    passed    bigint NOT NULL DEFAULT 0,
    failed    bigint NOT NULL DEFAULT 0,
    timed_out bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    retried   bigint NOT NULL DEFAULT 0,
    bridged   bigint NOT NULL DEFAULT 0,
    scored    bigint NOT NULL DEFAULT 0,
    score_sum numeric NOT NULL DEFAULT 0,
    tokens    bigint NOT NULL DEFAULT 0,
    cost_usd  numeric NOT NULL DEFAULT 0,
    PRIMARY KEY (batch_id, shard)
) WITH (fillfactor = 50);
COMMENT ON TABLE batch_progress IS 'One row a shard, so that workers of different shards never wait for each other; numeric sums do not depend on their order.';

CREATE VIEW batch_status AS
SELECT batch_id,
       sum(total)::bigint     AS total,
       sum(total - completed - failed - timed_out - cancelled)::bigint AS pending,
       sum(completed)::bigint AS completed,
       sum(passed)::bigint    AS passed,
       sum(failed)::bigint    AS failed,
       sum(timed_out)::bigint AS timed_out,
       sum(cancelled)::bigint AS cancelled,
       sum(retried)::bigint   AS retried,
       sum(bridged)::bigint   AS bridged,
       (sum(score_sum) / nullif(sum(scored), 0))::double precision AS score,
       sum(tokens)::bigint    AS tokens,
       sum(cost_usd)          AS cost_usd
FROM batch_progress
GROUP BY batch_id;

-- Only the owner of the tables may create partitions; this lets those who insert ask for one.
CREATE FUNCTION ensure_events_partition(wanted date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    first_day date := date_trunc('month', wanted)::date;
    partition text := 'events_' || to_char(first_day, 'YYYY_MM');
BEGIN
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('scoreline.events_partition'));
    -- IF NOT EXISTS: the cached "no such table" outlives the wait, only CREATE itself looks again.
    EXECUTE format(
        'CREATE TABLE IF NOT EXISTS %I PARTITION OF events FOR VALUES FROM (%L) TO (%L)',
        partition, first_day, (first_day + interval '1 month')::date
    );
END
$$;
REVOKE EXECUTE ON FUNCTION ensure_events_partition(date) FROM PUBLIC;
