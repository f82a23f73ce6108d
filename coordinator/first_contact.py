"""Endpoints that have never answered a batch: the batch is paused, and its evaluations stay open.

An executor that can't connect to an endpoint, and has had no answer from it in this batch, closes the
attempt as `unreachable`, which uses up no retry. If such faults last, or reach `fail_fast_after`, the URL
is wrong or the server does not run, and retries would not help. A variant with a completed evaluation has
reached its target and its judges; its faults are retried like any other.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from coordinator.attempt_opening import spec_of
from domain.batch_spec import BatchSpec
from domain.retry_policy import UNREACHABLE
from projections.ledger.batch import Batch
from projections.ledger.contract import Ledger, UnreachableEvaluation

GRACE = 20.0
"""Seconds for which an endpoint may take to answer for the first time: it may be starting."""
LOOK_EVERY = 2.0
FORGET_AFTER = 45.0
"""Seconds without a new fault after which earlier ones count no more; longer than a breaker is open."""
LIMIT = 1_000
LONGEST_REASON = 250

Key = tuple[str, int]
"""An evaluation and its attempt."""


@dataclass(slots=True)
class _Faults:
    """The faults of a batch since it last started to run."""

    before: frozenset[Key]
    """Earlier faults: from before the pause, or from before this coordinator led."""
    looked_at: float
    seen: set[Key] = field(default_factory=set)
    since: float = 0.0
    newest_at: float = 0.0

    def add(self, found: Sequence[UnreachableEvaluation], now: float) -> None:
        """Count faults that are new."""
        fresh = {(each.evaluation_id, each.attempt) for each in found} - self.before - self.seen
        if not fresh:
            if now - self.newest_at > FORGET_AFTER:
                self.seen.clear()
            return
        self.since = self.since if self.seen else now
        self.newest_at = now
        self.seen |= fresh

    def is_enough(self, now: float, *, fail_fast_after: int) -> bool:
        """Decide whether the batch should be paused."""
        evaluations = len({evaluation_id for evaluation_id, _ in self.seen})
        is_many = 0 < fail_fast_after <= evaluations
        return bool(self.seen) and (is_many or now - self.since >= GRACE)


class FirstContactCheck:
    """Watches running batches for endpoints that have never answered."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._clock = clock
        self._faults: dict[str, _Faults] = {}

    async def reason_to_pause(self, batch: Batch) -> str | None:
        """Return why a batch should be paused: an endpoint that it needs has never answered."""
        now, faults = self._clock(), self._faults.get(batch.batch_id)
        if faults and now - faults.looked_at < LOOK_EVERY:
            return None
        found = await self._ledger.unreached(batch, kind=UNREACHABLE, limit=LIMIT)
        if faults is None:
            before = frozenset((each.evaluation_id, each.attempt) for each in found)
            self._faults[batch.batch_id] = _Faults(before, now)
            return None
        faults.looked_at = now
        faults.add(found, now)
        spec = spec_of(batch)
        if found and faults.is_enough(now, fail_fast_after=spec.fail_fast_after):
            return unreachable(found[-1], spec)
        return None

    def release(self, batch_id: str) -> None:
        """Reset the state of a batch that was paused."""
        self._faults.pop(batch_id, None)

    def retain(self, batch_ids: Container[str]) -> None:
        """Drop the state of batches that are not running."""
        self._faults = {key: faults for key, faults in self._faults.items() if key in batch_ids}


def unreachable(fault: UnreachableEvaluation, spec: BatchSpec) -> str:
    """Describe the unreachable target or judge, the error, and what to check."""
    message = fault.message.removeprefix("unreachable: ")
    if not message.startswith("evaluator "):
        label = spec.targets[fault.variant % len(spec.targets)].label
        message = f"target {label}: {message}"
    return f"{message[:LONGEST_REASON]}. Check the URL, and that the server is running"
