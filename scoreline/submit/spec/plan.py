"""A plan: all that is known of a batch before its cases are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from domain.batch_spec import BatchSpec
from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.sources import Source


@dataclass(frozen=True, slots=True)
class Recorded:
    """A file with answers that were given elsewhere; they join their cases by id, or by position."""

    path: Path
    columns: Columns = field(default_factory=Columns)
    """Where its records are, and which field is the id."""
    output: str | None = None
    """The field of the answer; by default the usual names are tried."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A spec that makes sense."""

    batch: BatchSpec
    source: Source
    recorded: Mapping[int, Recorded] = field(default_factory=dict)
    """The answers of recorded targets, by the target's place among `batch.targets`."""
    repetitions_given: bool = True
    """If not given, the number of recorded answers of the case that has the most."""
    project: str = "default"
    tags: tuple[str, ...] = ()
    """Labels of the batch."""
    only_tagged: tuple[str, ...] = ()
    """Only cases with at least one of these tags, where there are any."""
    limit: int | None = None
    """Only so many cases, of those that are left."""
    priority: int = 1
    cache: bool = False
    max_duration: timedelta | None = None
    min_pass_rate: float | None = None
    max_cost_usd: Decimal | None = None
    max_tokens: int | None = None
    is_simulated: bool = False
    """Whether every target and evaluator that makes calls was replaced by its simulated form."""
