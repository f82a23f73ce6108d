-- Batches that have just finished, for the metric that names them.

CREATE INDEX batches_finished ON batches (finished_at) WHERE finished_at IS NOT NULL;
