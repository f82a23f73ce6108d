"""What the simulator counted, put into figures. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MESSAGES = "/v1/messages"
MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class SimulatorCounts:
    """What a simulator had seen at one moment of the bench's clock."""

    at: float
    ok: int = 0
    too_many: int = 0
    admitted: int = 0
    tokens: int = 0
    each_second: Mapping[int, int] = field(default_factory=dict)
    """Calls taken on, by the second of the simulator's own clock."""
    most_in_flight: int = 0

    @property
    def came(self) -> int:
        """Count the calls that arrived, taken on or not."""
        return self.admitted + self.too_many


def read_stats(stats: Mapping[str, Any], *, at: float) -> SimulatorCounts:
    """Read what `/_sim/stats` says."""
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
    """Say which part of a limit's worth was answered between two looks, and what was refused."""
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
    """Say which part of what was done alone is missing beside another; more is not less than nothing."""
    return round(max(0.0, 1 - beside / alone), 4) if alone else 0.0
