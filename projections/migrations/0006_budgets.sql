-- What a batch may cost. What it has cost is in batch_progress, which counts whatever was paid.

ALTER TABLE batches
    ADD COLUMN max_cost_usd numeric CHECK (max_cost_usd > 0),
    ADD COLUMN max_tokens   bigint CHECK (max_tokens > 0);
COMMENT ON COLUMN batches.max_cost_usd IS 'Once so much is spent the batch is paused; null: no limit.';
COMMENT ON COLUMN batches.max_tokens IS 'As max_cost_usd, in tokens of input and output.';

-- The newest dead letters of a batch. Partial, so that an evaluation that ends well pays nothing for it.
CREATE INDEX scorecards_dead ON scorecards (batch_id, ended_at DESC, evaluation_id)
    WHERE status IN ('failed', 'timed_out');
