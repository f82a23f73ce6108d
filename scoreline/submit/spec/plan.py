"""A plan: all that is known of a batch before its cases are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from domain.batch_spec import BatchSpec
from projections.ledger.batch import NewBatch
from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.sources import FileSource, Source


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
    """A batch as its spec and flags describe it, and where its cases come from."""

    batch: NewBatch
    """What is submitted; it gets its id when its cases have been read."""
    source: Source
    recorded: Mapping[int, Recorded] = field(default_factory=dict)
    """The answers of recorded targets, by the target's place among the targets of the spec."""
    repetitions_given: bool = True
    """If not given, the number of recorded answers of the case that has the most."""
    only_tagged: tuple[str, ...] = ()
    """Only cases with at least one of these tags, where there are any."""
    limit: int | None = None
    """Only so many cases, of those that are left."""
    cache: bool = False
    min_pass_rate: float | None = None
    is_simulated: bool = False
    """Whether every target and evaluator that makes calls was replaced by its simulated form."""

    @property
    def spec(self) -> BatchSpec:
        """The spec of the batch."""
        return self.batch.spec

    @property
    def files(self) -> list[Path]:
        """The files that its cases and recorded answers are read from."""
        dataset = [self.source.path] if isinstance(self.source, FileSource) else []
        return [*dataset, *(recorded.path for recorded in self.recorded.values())]

    def with_spec(self, spec: BatchSpec) -> "Plan":
        """Return the plan with another spec of its batch."""
        return replace(self, batch=replace(self.batch, spec=spec))
