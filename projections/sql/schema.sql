-- The table of applied migrations, and the number of shards.

-- name: create_schema_migrations
-- Creates the table of applied migrations.
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: record_shards
-- Stores the number of shards, once.
INSERT INTO settings (name, value) VALUES ('shards', %s) ON CONFLICT DO NOTHING;

-- name: recorded_shards
-- Returns the number of shards; no row before it is stored.
SELECT value FROM settings WHERE name = 'shards';
