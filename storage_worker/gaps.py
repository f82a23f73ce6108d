"""How long to wait for a missing event: the policy, its circuit breaker, and one warning for each gap."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from storage_worker.stream_diff import Resolution

logger = logging.getLogger(__name__)

REMEMBERED_WARNINGS = 10_000


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """When to stop waiting for order, and for how long."""

    rate: float = 0.05
    """Share of the evaluations read whose gap has passed the warning limit."""
    minimum: int = 200
    """Evaluations to read before a share means anything."""
    window: float = 30.0
    cooldown: float = 60.0


class GapBreaker:
    """Circuit breaker on the gap rate: while it is open, waiting for each gap would only delay all else."""

    def __init__(self, limits: BreakerLimits | None = None) -> None:
        self._limits = limits or BreakerLimits()
        self._window_end = 0.0
        self._open_until = 0.0
        self._evaluations = 0
        self._gaps = 0

    def is_open(self, now: float) -> bool:
        """Whether to continue without waiting."""
        return now < self._open_until

    def observe(self, now: float, *, evaluations: int, gaps: int) -> bool:
        """Count one pass; returns whether this very pass opened the breaker."""
        if now >= self._window_end:
            self._window_end = now + self._limits.window
            self._evaluations = self._gaps = 0
        self._evaluations += evaluations
        self._gaps += gaps
        if self.is_open(now) or self._evaluations < self._limits.minimum:
            return False
        if self._gaps <= self._evaluations * self._limits.rate:
            return False
        self._open_until = now + self._limits.cooldown
        self._window_end = 0.0
        return True


@dataclass(frozen=True, slots=True)
class GapPolicy:
    """How long to wait for a missing event before its gap is bridged."""

    timeout: timedelta
    warning: timedelta

    def degraded(self) -> "GapPolicy":
        """Return the policy that bridges at once, and warns as before."""
        return GapPolicy(timedelta(0), self.warning)

    @property
    def is_degraded(self) -> bool:
        """Whether gaps are bridged without waiting."""
        return not self.timeout

    def bridge_until_ms(self, now_ms: int) -> int:
        """Return the arrival before which a gap has waited long enough."""
        return now_ms - int(self.timeout.total_seconds() * 1000)

    def needs_warning(self, since_ms: int, now_ms: int) -> bool:
        """Whether a gap is older than what mere jitter explains."""
        return now_ms - since_ms >= self.warning.total_seconds() * 1000


class GapMonitor:
    """Applies the policy to the gaps of each pass: logs each old gap once, and drives the breaker."""

    def __init__(self, policy: GapPolicy, breaker: GapBreaker, clock: Callable[[], float]) -> None:
        self._policy = policy
        self._breaker = breaker
        self._clock = clock
        self._warned: OrderedDict[tuple[str, int, int], None] = OrderedDict()

    @property
    def is_open(self) -> bool:
        """Whether the breaker is open: gaps are bridged without waiting because there are too many."""
        return self._breaker.is_open(self._clock())

    @property
    def is_degraded(self) -> bool:
        """Whether gaps are bridged without waiting, by the policy or because the breaker is open."""
        return self._applied().is_degraded

    def bridge_until_ms(self, now_ms: int) -> int:
        """Return the arrival before which a gap is bridged now."""
        return self._applied().bridge_until_ms(now_ms)

    def _applied(self) -> GapPolicy:
        return self._policy.degraded() if self.is_open else self._policy

    def observe(self, resolutions: Sequence[Resolution], now_ms: int) -> int:
        """Check the gaps of one pass; returns how many were warned of for the first time."""
        old = [r for r in resolutions if r.gap and self._policy.needs_warning(r.gap.since_ms, now_ms)]
        warned = sum(map(self._warn_once, old))
        # Only gaps that the breaker can help: one without a closing event can't be bridged anyhow.
        bridgeable = sum(1 for r in old if r.gap and r.gap.closing)
        if self._breaker.observe(self._clock(), evaluations=len(resolutions), gaps=bridgeable):
            logger.error("too many gaps: bridging at once (degraded mode)")
        return warned

    def _warn_once(self, resolution: Resolution) -> bool:
        gap, change = resolution.gap, resolution.change
        if gap is None or change is None:
            return False
        key = (change.evaluation_id, gap.attempt, gap.missing[0].start if gap.missing else 0)
        if key in self._warned:
            return False
        self._warned[key] = None
        if len(self._warned) > REMEMBERED_WARNINGS:
            self._warned.popitem(last=False)
        extra = {
            "evaluation_id": key[0],
            "batch_id": change.batch_id,
            "attempt": gap.attempt,
            "missing": [[span.start, span.stop - 1] for span in gap.missing],
        }
        logger.warning("gap: events are missing", extra=extra)
        return True
