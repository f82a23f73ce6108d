"""Figures computed from the simulator's counts. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MESSAGES = "/v1/messages"
MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class SimulatorCounts:
    """The simulator's counts at one moment of the benchmark's clock."""

    at: float
    ok: int = 0
    too_many: int = 0
    admitted: int = 0
    tokens: int = 0
    each_second: Mapping[int, int] = field(default_factory=dict)
    """Admitted calls, by second of the simulator's clock."""
    most_in_flight: int = 0

    @property
    def came(self) -> int:
        """The number of received calls, admitted or not."""
        return self.admitted + self.too_many


def read_stats(stats: Mapping[str, Any], *, at: float) -> SimulatorCounts:
    """Parse `/_sim/stats`."""
    statuses = stats["calls"].get(MESSAGES, {})
    return SimulatorCounts(
        at=at,
        ok=statuses.get("200", 0),
        too_many=statuses.get("429", 0),
        admitted=stats["admitted"],
        tokens=stats["input_tokens"] + stats["output_tokens"],
        each_second={int(second): number for second, number in stats["admitted_per_second"].items()},
        most_in_flight=stats["max_in_flight"],
    )


def goodput(
    first: SimulatorCounts, last: SimulatorCounts, *, rpm: float, tpm: float = 0.0
) -> dict[str, Any]:
    """Return the share of the limit that was answered between two moments, and the share of 429 replies."""
    minutes = (last.at - first.at) / MINUTE
    done = last.tokens - first.tokens if tpm else last.ok - first.ok
    came = last.came - first.came
    too_many = last.too_many - first.too_many
    return {
        "goodput_ratio": round(done / ((tpm or rpm) * minutes), 4),
        "share_429": round(too_many / came, 5) if came else 0.0,
        "answered": last.ok - first.ok,
        "refused": too_many,
        "most_in_flight": last.most_in_flight,
        "seconds": round(last.at - first.at, 2),
    }


def busiest(each_second: Mapping[int, int], *, since: int, seconds: int) -> int:
    """Count the calls of the fullest stretch of so many seconds that ends after a moment."""
    if not each_second:
        return 0
    ends = range(since, max(each_second) + 1)
    return max((sum(each_second.get(end - back, 0) for back in range(seconds)) for end in ends), default=0)


def lost(alone: float, beside: float) -> float:
    """Return the share of the throughput alone that is lost beside another lane, at least 0."""
    return round(max(0.0, 1 - beside / alone), 4) if alone else 0.0
