"""What a check has found, by what it means to a user."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Findings:
    """All that is not as it was promised; and, apart from that, which seldom paths were taken."""

    lost: list[str] = field(default_factory=list)
    """Evaluations, or events that had been acknowledged, of which the tables have nothing."""
    doubled: list[str] = field(default_factory=list)
    """What is stored, counted or paid for twice."""
    stuck: list[str] = field(default_factory=list)
    """Evaluations that have not ended."""
    violations: list[str] = field(default_factory=list)
    """Whatever else is not as it should be."""
    paths: Counter[str] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.lost or self.doubled or self.stuck or self.violations)

    def brief(self) -> str:
        """Return the first of each kind; nothing if there is none."""
        kinds = {name: getattr(self, name) for name in ("violations", "lost", "doubled", "stuck")}
        return "; ".join(f"{len(found)} {name}: {found[0]}" for name, found in kinds.items() if found)
