"""What is kept of a lane: plain numbers, the same in memory and in the hash that Redis keeps.

Times are Unix seconds, and 0 says never, or not known. Nothing here is the truth about anything: whatever
is lost is learnt again, and a lane that knows nothing lets calls through as if it had just been full.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

HELD = "held:"
"""Begins the names of the hash's fields that say what an executor holds."""
LIMIT = "limit:"
"""Prefix of the hash's fields that hold the limits in force, followed by the origin."""


@dataclass(frozen=True, slots=True)
class Held:
    """Permits in one executor's hands, and until when that is believed without its saying so again."""

    count: int
    until: float


@dataclass(frozen=True, slots=True)
class LimitInForce:
    """A limit that a batch has declared, and when it expires; 0 stands for no limit of that kind."""

    rpm: float
    tpm: float
    max_concurrency: int
    gap: float
    until: float


@dataclass(frozen=True, slots=True)
class LaneState:
    """One lane."""

    next_request_at: float = 0.0
    """Virtual time: when the next call may start, all that were granted having taken their share."""
    next_token_at: float = 0.0
    next_gap_at: float = 0.0
    paced_since: float = 0.0
    """Since when all clocks have been running that are."""
    told_rpm: float = 0.0
    """What the other side's headers said last."""
    told_tpm: float = 0.0
    learnt_rpm: float = 0.0
    """What seems to go through, where nobody said a limit."""
    refused_rpm: float = 0.0
    """What went through when that was last too much."""
    grown_at: float = 0.0
    """When what was learnt was last changed."""
    tokens_per_call: float = 0.0
    answered: int = 0
    oks: float = 0.0
    """Good answers since `oks_since`, old ones forgotten by halves."""
    oks_since: float = 0.0

    taken_at: float = 0.0
    """When permits were last granted, and how many of them may still come back for their full worth."""
    taken: int = 0
    slack: float = 0.0
    """Seconds by which the virtual time could have been earlier at every grant since `slack_since`."""
    slack_since: float = 0.0

    concurrency: float = 0.0
    was_cut: int = 0
    """Whether the slow start is over."""
    cut_at: float = 0.0

    blocked_at: float = 0.0
    blocked_until: float = 0.0
    refusals: int = 0
    """Rounds in a row that ended in a 429."""

    failures: int = 0
    broken_at: float = 0.0
    """When the breaker first opened, since it was last closed."""
    opened_at: float = 0.0
    """When it last opened."""
    open_until: float = 0.0
    """0: it is closed."""
    probe_until: float = 0.0

    why: str = ""
    since: float = 0.0
    short_until: float = 0.0
    """Until when it is believed that somebody is still waiting."""
    granted: int = 0
    rate_limited: int = 0
    rpm: float = 0.0
    """Under which limits the last ask was judged."""
    tpm: float = 0.0
    gap: float = 0.0
    slowed_at: float = 0.0
    """When the rate last fell: what permits from before that cost is not known any more."""
    reached_at: float = 0.0
    """When the other side last answered, with whatever status."""

    held: Mapping[str, Held] = field(default_factory=dict)
    limits: Mapping[str, LimitInForce] = field(default_factory=dict)

    @property
    def in_flight(self) -> int:
        """Count the permits in all hands."""
        return sum(each.count for each in self.held.values())


_KINDS = {each.name: each.type for each in fields(LaneState) if each.name not in {"held", "limits"}}


def read_state(found: Mapping[bytes, bytes]) -> LaneState:
    """Read a lane's hash; an empty one is a new lane."""
    texts = {name.decode(): value.decode() for name, value in found.items()}
    held = {name[len(HELD) :]: _held(text) for name, text in texts.items() if name.startswith(HELD)}
    limits = {name[len(LIMIT) :]: _limit(text) for name, text in texts.items() if name.startswith(LIMIT)}
    known = {name: _value(_KINDS[name], text) for name, text in texts.items() if name in _KINDS}
    return LaneState(**known, held=held, limits=limits)  # type: ignore[arg-type]  # by name, each of its field's kind


def _value(kind: object, text: str) -> float | int | str:
    if kind is str:
        return text
    return int(float(text)) if kind is int else float(text)


def _held(text: str) -> Held:
    count, until = text.split()
    return Held(int(count), float(until))


def _limit(text: str) -> LimitInForce:
    rpm, tpm, max_concurrency, gap, until = text.split()
    return LimitInForce(float(rpm), float(tpm), int(float(max_concurrency)), float(gap), float(until))
