"""Identifiers: names that people type, evaluation ids, and run ids.

`scoreline batch run` on one machine starts a coordinator and executors of its own, with its environment,
working directory and keys. Its run id is stored with the batch and in the batch registry, and only
processes that were started with it serve the batch; a later run replaces it. The fleet serves all other
batches.
"""

from typing import Annotated

from pydantic import StringConstraints

NAME_PATTERN = r"^[^\x00-\x1f\x7f]+$"
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NAME_PATTERN)]
"""An identifier that people type and logs print: short, and without control characters."""

FLEET = ""
"""The run id of batches and processes that belong to no local run."""


def evaluation_id(batch_id: str, number: int) -> str:
    """Return the id of the n-th evaluation of a batch, from 1: ids sort in the order of the dataset."""
    return f"{batch_id}.{number:08}"
