"""What a row of the proof comes to: one fault, many runs, and everything that must be nought."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    """The runs under one fault, counted together."""

    fault: str
    runs: int = 0
    lost: int = 0
    """Evaluations, or events that had been acknowledged, of which the tables have nothing."""
    doubled: int = 0
    """Events stored, counted or paid for twice."""
    stuck: int = 0
    """Evaluations that had not ended when all faults were over."""
    violations: int = 0
    """Whatever else the checker named."""
    failures: list[str] = field(default_factory=list)
    """How to see each failure again: its seed or case, and what went wrong."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing went wrong, in at least one run."""
        return self.runs > 0 and not (self.lost or self.doubled or self.stuck or self.violations)
