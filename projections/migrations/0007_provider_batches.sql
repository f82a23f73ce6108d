-- Answers that come from a provider's batches: which evaluations wait for one, and what was asked of whom.

ALTER TABLE evaluations ADD COLUMN asked_in text;
COMMENT ON COLUMN evaluations.asked_in IS 'Waits for an answer from a provider batch: its id, or empty until it is in one; null for all that executors are told of.';

ALTER TABLE batches ADD COLUMN told_apart bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN batches.told_apart IS 'Evaluations that executors were told of, or that ended, after they had waited for a provider batch: no window counts them.';

CREATE TABLE provider_batches (
    id           text COLLATE "C" PRIMARY KEY,
    batch_id     text COLLATE "C" NOT NULL,
    target       smallint NOT NULL,
    state        text NOT NULL DEFAULT 'intended'
        CHECK (state IN ('intended', 'submitted', 'ended', 'collected', 'cancelled', 'abandoned')),
    provider_id  text,
    members      integer[] NOT NULL,
    attempts     integer[] NOT NULL,
    bytes        bigint NOT NULL,
    digest       text NOT NULL,
    intended_at  timestamptz NOT NULL,
    claimed_at   timestamptz NOT NULL,
    submitted_at timestamptz,
    polled_at    timestamptz,
    ended_at     timestamptz,
    closed_at    timestamptz,
    called_off   boolean NOT NULL DEFAULT false,
    processing   integer NOT NULL DEFAULT 0,
    succeeded    integer NOT NULL DEFAULT 0,
    errored      integer NOT NULL DEFAULT 0,
    canceled     integer NOT NULL DEFAULT 0,
    expired      integer NOT NULL DEFAULT 0,
    note         text NOT NULL DEFAULT '',
    UNIQUE (provider_id),
    CHECK (cardinality(members) = cardinality(attempts))
);
COMMENT ON TABLE provider_batches IS 'Written down before anything is submitted: what was asked is known even if nobody lived to hear the reply.';
COMMENT ON COLUMN provider_batches.members IS 'Numbers of the evaluations, whose attempts stand beside them in the same order.';
COMMENT ON COLUMN provider_batches.claimed_at IS 'Since when whoever means to submit it has the right to; compared and set by whoever tries again.';
COMMENT ON COLUMN provider_batches.note IS 'What keeps it, in words for people.';
CREATE INDEX provider_batches_open ON provider_batches (id) WHERE state IN ('intended', 'submitted', 'ended');
CREATE INDEX provider_batches_by_batch ON provider_batches (batch_id);

GRANT SELECT ON provider_batches TO scoreline_reader, scoreline_storage, scoreline_coordinator;
GRANT INSERT, UPDATE ON provider_batches TO scoreline_coordinator;
GRANT ALL ON provider_batches TO scoreline_migrator;

CREATE OR REPLACE FUNCTION epoch_of(one evaluations) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN one.epoch <> '' OR one.attempt > 1 OR one.asked_in IS NOT NULL THEN one.epoch
        WHEN EXISTS (SELECT FROM serial_links l WHERE l.evaluation_id = one.evaluation_id) THEN ''
        ELSE coalesce((
            SELECT w.epochs[one.shard + 1]
            FROM batch_windows w
            WHERE w.batch_id = one.batch_id AND w.last_id >= one.evaluation_id
            ORDER BY w.last_id
            LIMIT 1
        ), '')
    END
$$;
