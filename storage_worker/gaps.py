"""How long to wait for a missing event: pure, told the time."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """When to stop waiting for order, and for how long."""

    rate: float = 0.05
    """Share of evaluations looked at whose gap has passed the warning limit."""
    minimum: int = 200
    """Evaluations to have looked at before a share means anything."""
    window: float = 30.0
    cooldown: float = 60.0


class GapBreaker:
    """Opens when gaps become the rule: waiting for each would then hold everything up for nothing."""

    def __init__(self, limits: BreakerLimits | None = None) -> None:
        self._limits = limits or BreakerLimits()
        self._window_end = 0.0
        self._open_until = 0.0
        self._looked = 0
        self._gapped = 0

    def is_open(self, now: float) -> bool:
        """Whether to go on without waiting."""
        return now < self._open_until

    def observe(self, now: float, *, looked: int, gapped: int) -> bool:
        """Count one look; returns whether this very look opened the breaker."""
        if now >= self._window_end:
            self._window_end = now + self._limits.window
            self._looked = self._gapped = 0
        self._looked += looked
        self._gapped += gapped
        if self.is_open(now) or self._looked < self._limits.minimum:
            return False
        if self._gapped <= self._looked * self._limits.rate:
            return False
        self._open_until = now + self._limits.cooldown
        self._window_end = 0.0
        return True


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait at this moment."""

    timeout: timedelta
    warning: timedelta

    def hurried(self) -> "Patience":
        """Wait for nothing, but go on warning."""
        return Patience(timedelta(0), self.warning)

    @property
    def is_none(self) -> bool:
        """Whether order is not waited for at all."""
        return not self.timeout

    def bridge_until_ms(self, now_ms: int) -> int:
        """The arrival before which a gap has waited long enough."""
        return now_ms - int(self.timeout.total_seconds() * 1000)

    def is_worth_a_warning(self, since_ms: int, now_ms: int) -> bool:
        """Whether a gap is older than what mere jitter explains."""
        return now_ms - since_ms >= self.warning.total_seconds() * 1000
