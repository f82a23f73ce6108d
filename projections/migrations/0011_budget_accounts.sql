-- What a budget account knows that no event records, and what a batch that its budget has paused needs next.

ALTER TABLE batches
    ADD COLUMN unrecorded_usd    numeric NOT NULL DEFAULT 0 CHECK (unrecorded_usd >= 0),
    ADD COLUMN unrecorded_tokens bigint NOT NULL DEFAULT 0 CHECK (unrecorded_tokens >= 0),
    ADD COLUMN next_usd          numeric CHECK (next_usd >= 0),
    ADD COLUMN next_tokens       bigint CHECK (next_tokens >= 0);
COMMENT ON COLUMN batches.unrecorded_usd IS 'Estimated cost of calls that were paid and whose answers are lost: an executor died, or the call timed out. Counts against the budget.';
COMMENT ON COLUMN batches.next_usd IS 'What the next call may cost, where the budget has no room for it; null: it has.';

ALTER TABLE provider_batches
    ADD COLUMN reserved_cost   bigint NOT NULL DEFAULT 0,
    ADD COLUMN reserved_tokens bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN provider_batches.reserved_cost IS 'Nanodollars reserved in the budget account of its batch until its results are on record.';
