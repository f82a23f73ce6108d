"""What a worker has done since it started; the health endpoint shows it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from storage_worker.sighting import Resolution


@dataclass(slots=True)
class Tally:
    """Counts, by what they count."""

    passes: int = 0
    events: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    bridged: int = 0
    quarantined: int = 0
    lost_races: int = 0
    gaps_open: int = 0
    gaps_warned: int = 0
    reordered: int = 0

    def count(self, resolutions: Iterable[Resolution], lost: set[str]) -> None:
        """Add what a pass has committed."""
        self.passes += 1
        self.lost_races += len(lost)
        for resolution in resolutions:
            change = resolution.change
            if change is None or change.evaluation_id in lost:
                continue
            self.duplicates += resolution.duplicates
            self.bridged += len(change.bridges)
            self.reordered += change.reordered
            self.events.update(event.verdict for event in (*change.events, *change.side_events))

    def add(self, other: "Tally") -> None:
        """Add what another has counted."""
        self.passes += other.passes
        self.events.update(other.events)
        self.duplicates += other.duplicates
        self.bridged += other.bridged
        self.quarantined += other.quarantined
        self.lost_races += other.lost_races
        self.reordered += other.reordered

    def as_dict(self) -> dict[str, object]:
        """Show the counts as plain data."""
        return asdict(self) | {"events": dict(self.events)}  # asdict spoils a Counter on Python 3.11
