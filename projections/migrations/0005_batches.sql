-- The control plane: what was submitted, how far it is published, and what people asked for.

ALTER TABLE batches
    ADD COLUMN name         text NOT NULL DEFAULT '',
    ADD COLUMN project      text NOT NULL DEFAULT 'default',
    ADD COLUMN dataset      text NOT NULL DEFAULT '',
    ADD COLUMN tags         text[] NOT NULL DEFAULT '{}',
    ADD COLUMN priority     smallint NOT NULL DEFAULT 1,
    ADD COLUMN spec         json,
    ADD COLUMN total        bigint,
    ADD COLUMN state        text NOT NULL DEFAULT 'running'
        CHECK (state IN ('running', 'paused', 'cancelled', 'expired', 'completed')),
    ADD COLUMN reason       text NOT NULL DEFAULT '',
    ADD COLUMN deadline     timestamptz,
    ADD COLUMN published_to text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN finished_at  timestamptz;
COMMENT ON COLUMN batches.published_to IS 'Executors have been told of no evaluation beyond this id: those that follow wait in Postgres alone.';
COMMENT ON COLUMN batches.state IS 'What people asked for; it is over once finished_at is set.';
CREATE INDEX batches_unfinished ON batches (batch_id) WHERE finished_at IS NULL;
CREATE INDEX batches_by_time ON batches (accepted_at DESC);

CREATE TABLE batch_events (
    batch_id text COLLATE "C" NOT NULL,
    number   bigint GENERATED ALWAYS AS IDENTITY,
    type     text NOT NULL,
    by_whom  text NOT NULL,
    reason   text NOT NULL DEFAULT '',
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (batch_id, number)
);
COMMENT ON TABLE batch_events IS 'What was asked of a batch, by whom, and when it was over; only inserted.';

CREATE TABLE batch_windows (
    batch_id    text COLLATE "C" NOT NULL,
    last_id     text COLLATE "C" NOT NULL,
    evaluations integer NOT NULL,
    epochs      text[] NOT NULL,
    opened_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (batch_id, last_id)
);
COMMENT ON TABLE batch_windows IS 'Evaluations are published a window at a time; its epochs, one a shard, are written down before anybody is told.';

-- The case is in the opening event; these three let people join and filter without opening it.
ALTER TABLE evaluations
    ADD COLUMN case_id    text COLLATE "C",
    ADD COLUMN variant    smallint,
    ADD COLUMN repetition integer;
-- Unfinished evaluations of one batch, in order: sweeps and reconciliation look no further than is published.
DROP INDEX evaluations_open;
CREATE INDEX evaluations_open ON evaluations (batch_id, evaluation_id) WHERE ended_at IS NULL;
CREATE INDEX evaluations_unpublished ON evaluations (evaluation_id) WHERE NOT published;

CREATE TABLE datasets (
    name        text COLLATE "C" NOT NULL,
    project     text COLLATE "C" NOT NULL DEFAULT 'default',
    source      text NOT NULL,
    tags        text[] NOT NULL DEFAULT '{}',
    cases       bigint NOT NULL,
    imported_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project, name)
);

CREATE TABLE test_cases (
    project  text COLLATE "C" NOT NULL,
    dataset  text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    case_id  text COLLATE "C" NOT NULL,
    input    json,
    expected json,
    tags     text[] NOT NULL DEFAULT '{}',
    fields   json NOT NULL,
    PRIMARY KEY (project, dataset, position),
    UNIQUE (project, dataset, case_id)
);
COMMENT ON COLUMN test_cases.position IS 'The row''s place in its file, from 1.';

CREATE TABLE responses (
    cache_key     text COLLATE "C" NOT NULL,
    month         date NOT NULL,
    evaluation_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (cache_key, month, evaluation_id)
);
COMMENT ON TABLE responses IS 'Whose log holds the answer to a question asked with --cache: a digest of target, parameters, rendered input and repetition.';

CREATE TABLE serial_links (
    evaluation_id text COLLATE "C" PRIMARY KEY,
    batch_id      text COLLATE "C" NOT NULL,
    follows       text COLLATE "C" NOT NULL,
    needs         text[] NOT NULL DEFAULT '{}',
    recalls       json NOT NULL DEFAULT '[]'
);
COMMENT ON TABLE serial_links IS 'An evaluation that waits for another to end, those whose answers it needs, and under which names.';
CREATE INDEX serial_links_by_batch ON serial_links (batch_id, follows);

GRANT SELECT ON batch_events, batch_windows, datasets, test_cases, responses, serial_links
    TO scoreline_reader, scoreline_storage, scoreline_coordinator;
GRANT INSERT ON batch_events, batch_windows, responses, serial_links TO scoreline_coordinator;
GRANT INSERT, UPDATE, DELETE ON datasets, test_cases TO scoreline_coordinator;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO scoreline_coordinator;
GRANT ALL ON batch_events, batch_windows, datasets, test_cases, responses, serial_links TO scoreline_migrator;
REVOKE UPDATE, DELETE, TRUNCATE ON batch_events FROM scoreline_migrator;

CREATE FUNCTION epoch_of(one evaluations) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN one.epoch <> '' OR one.attempt > 1 THEN one.epoch
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
COMMENT ON FUNCTION epoch_of IS 'In which epoch an evaluation''s newest attempt was published; empty if nobody was ever told of it.';
