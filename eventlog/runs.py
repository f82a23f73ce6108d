"""Runs: which coordinator and executors serve a batch.

`scoreline batch run` on one machine starts a coordinator and executors of its own, with its environment,
working directory and keys. Its run id is a fencing token: it stands in the batch's row and on the board,
and only processes that were started with it serve the batch. A batch without one is served by the fleet.
"""

FLEET = ""
"""The run id of batches and processes that belong to no local run."""
