"""Batches with changed counters and limits, named as the fields of `Progress` and `Budget`."""

from dataclasses import fields, replace
from typing import Any, TypeVar

from projections.folds.progress import Progress
from projections.ledger.batch import Batch, Budget
from projections.queries.batches import BatchSnapshot

COUNTERS = {each.name for each in fields(Progress)}


T = TypeVar("T", Batch, BatchSnapshot)


def changed(batch: T, **changes: Any) -> T:
    """Return a batch with some fields changed; what it has spent follows from its cost."""
    counters = {name: changes.pop(name) for name in COUNTERS & changes.keys()}
    limits = {name: changes.pop(name) for name in Budget._fields if name in changes}
    progress, budget = replace(batch.progress, **counters), batch.budget._replace(**limits)
    spent = budget._replace(
        spent_usd=progress.cost_usd + budget.unrecorded_usd,
        spent_tokens=progress.tokens + budget.unrecorded_tokens,
    )
    return replace(batch, progress=progress, budget=spent, **changes)
