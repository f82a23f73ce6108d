-- Which local run serves a batch: a fencing token, replaced by each `batch run` and `batch resume` on one machine.

ALTER TABLE batches ADD COLUMN run_id text COLLATE "C" NOT NULL DEFAULT '';
COMMENT ON COLUMN batches.run_id IS 'Only the coordinator and the executors of this run serve the batch; empty: those of the fleet.';
