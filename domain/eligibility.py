"""Which batches an executor may serve: its run, its project, and the labels it declares. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from domain.ids import FLEET

LABEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/-]*(=[A-Za-z0-9._/-]+)?$"
MAX_LABELS = 50
MAX_LENGTH = 100
Label = Annotated[str, Field(pattern=LABEL_PATTERN, max_length=MAX_LENGTH)]
"""`gpu`, or a name with a value: `region=eu`."""


def is_label(text: str) -> bool:
    """Whether a text can be declared and required."""
    return len(text) <= MAX_LENGTH and re.fullmatch(LABEL_PATTERN, text) is not None


@dataclass(frozen=True, slots=True)
class Eligibility:
    """What an executor declares."""

    run_id: str = FLEET
    """The local run it was started by; it serves nothing else."""
    project: str | None = None
    """The only project it serves; None: all."""
    labels: frozenset[str] = frozenset()

    def covers(self, *, run_id: str, project: str, requires: Iterable[str]) -> bool:
        """Whether a batch of this run and project, which requires these labels, may be served."""
        return (
            run_id == self.run_id and self.project in {None, project} and self.labels.issuperset(requires)
        )
