"""The state of a lane: numbers, with the same names in memory and as fields of the Redis hash.

Times are Unix seconds; 0 means never or unknown. The state is soft: a lane that is lost is learnt again,
and starts without burst credit.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

HELD = "held:"
"""Prefix of the hash's fields that hold permit leases, followed by the executor's id."""
LIMIT = "limit:"
"""Prefix of the hash's fields that hold the limits in force, followed by the origin."""


@dataclass(frozen=True, slots=True)
class PermitLease:
    """The permits that one executor holds, and when they expire unless it renews them."""

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
    """GCRA's theoretical arrival time of the next request."""
    next_token_at: float = 0.0
    next_gap_at: float = 0.0
    paced_since: float = 0.0
    """When the last of the arrival times in use was set."""
    advertised_rpm: float = 0.0
    """From the provider's rate limit headers."""
    advertised_tpm: float = 0.0
    learnt_rpm: float = 0.0
    """The learnt rate, used where no limit is configured or advertised."""
    refused_rpm: float = 0.0
    """The learnt rate at the last 429; 0 if it is not known to be near the limit."""
    noisy_until: float = 0.0
    """Until when 429 replies without Retry-After do not lower the learnt rate."""
    grown_at: float = 0.0
    """When the learnt rate last changed."""
    tokens_per_call: float = 0.0
    answered: int = 0
    oks: float = 0.0
    """Successes in the window since `oks_since`, decayed by halves."""
    rejects: float = 0.0
    """Overloads, and 429 replies without Retry-After, in the same window."""
    oks_since: float = 0.0

    taken_at: float = 0.0
    """When permits were last granted, and how many of them may still be refunded in full."""
    taken: int = 0
    slack: float = 0.0
    """Seconds by which the arrival time could have been earlier at every grant since `slack_since`."""
    slack_since: float = 0.0

    concurrency: float = 0.0
    was_cut: int = 0
    """Whether a 429 has ended the slow start."""
    cut_at: float = 0.0

    blocked_at: float = 0.0
    blocked_until: float = 0.0
    cuts: int = 0
    """Decreases of the learnt rate, each within the Retry-After of the one before."""
    cuts_until: float = 0.0
    """The end of that Retry-After, which does not block the lane."""
    refusals: int = 0
    """Consecutive decreases without a success between them."""

    failures: int = 0
    """Consecutive failures."""
    overloads: int = 0
    """Consecutive overloads."""
    broken_at: float = 0.0
    """When the breaker first opened, since it was last closed."""
    opened_at: float = 0.0
    """When it last opened."""
    open_until: float = 0.0
    """0: it is closed."""
    probe_until: float = 0.0

    blocked_by: str = ""
    since: float = 0.0
    short_until: float = 0.0
    """When the throttling recorded in `blocked_by` is stale."""
    granted: int = 0
    rate_limited: int = 0
    rpm: float = 0.0
    """The limits in force at the last request."""
    tpm: float = 0.0
    gap: float = 0.0
    slowed_at: float = 0.0
    """When the rate last decreased: the cost of permits granted before is unknown."""
    reached_at: float = 0.0
    """When the provider last responded, with any status."""

    held: Mapping[str, PermitLease] = field(default_factory=dict)
    limits: Mapping[str, LimitInForce] = field(default_factory=dict)

    @property
    def in_flight(self) -> int:
        """The permits held by all executors."""
        return sum(each.count for each in self.held.values())


_FIELD_TYPES = {
    each.name: each.type for each in dataclasses.fields(LaneState) if each.name not in {"held", "limits"}
}


def read_state(fields: Mapping[bytes, bytes]) -> LaneState:
    """Parse a lane's hash; an empty one is a new lane."""
    texts = {name.decode(): value.decode() for name, value in fields.items()}
    held = {name[len(HELD) :]: _held(text) for name, text in texts.items() if name.startswith(HELD)}
    limits = {name[len(LIMIT) :]: _limit(text) for name, text in texts.items() if name.startswith(LIMIT)}
    numbers = {
        name: _value(_FIELD_TYPES[name], text) for name, text in texts.items() if name in _FIELD_TYPES
    }
    return LaneState(**numbers, held=held, limits=limits)  # type: ignore[arg-type]  # by name


def _value(kind: object, text: str) -> float | int | str:
    if kind is str:
        return text
    return int(float(text)) if kind is int else float(text)


def _held(text: str) -> PermitLease:
    count, until = text.split()
    return PermitLease(int(count), float(until))


def _limit(text: str) -> LimitInForce:
    rpm, tpm, max_concurrency, gap, until = text.split()
    return LimitInForce(float(rpm), float(tpm), int(float(max_concurrency)), float(gap), float(until))
