-- When something of a batch last ended: written with the counters, which move then anyhow.

ALTER TABLE batch_progress ADD COLUMN last_ended_at timestamptz NOT NULL DEFAULT now();
COMMENT ON COLUMN batch_progress.last_ended_at IS 'When an evaluation of this shard last ended, or the row was made; no fact, and nothing is folded from it.';
